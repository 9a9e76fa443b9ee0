//! Query parameters as lenient servers read them, to find access tokens in URLs.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// The characters that separate the parameters of a query. Most servers accept only `&`, and some
/// also accept `;`.
pub const QUERY_SEPARATORS: [char; 2] = ['&', ';'];

/// Returns the name of one query parameter: percent-decoded, with `+` as a space, and without
/// surrounding whitespace.
pub fn query_parameter_name(parameter: &str) -> Cow<'_, [u8]> {
    let name = parameter
        .split_once('=')
        .map_or(parameter, |(name, _)| name);
    if !name.contains(['%', '+']) {
        return name.trim_ascii().as_bytes().into();
    }
    let spaced = name.replace('+', " ");
    percent_decode(spaced.as_bytes())
        .collect::<Vec<_>>()
        .trim_ascii()
        .to_vec()
        .into()
}

/// Returns whether a query parameter is named `access_token` (RFC 6750 section 2.3), in any letter
/// case and encoding.
pub fn is_access_token_parameter(parameter: &str) -> bool {
    query_parameter_name(parameter).eq_ignore_ascii_case(b"access_token")
}

/// Returns whether a query has a parameter named `access_token`, as [`is_access_token_parameter`]
/// defines it.
pub fn has_access_token_parameter(query: &str) -> bool {
    query.split(QUERY_SEPARATORS).any(is_access_token_parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F9: every spelling that a server may read as `access_token` is found.
    #[test]
    fn tokens_are_found() {
        for query in [
            "access_token=a",
            "access_token",
            "x=1&access_token=a",
            "access%5Ftoken=a",
            "%61ccess_token=a",
            "Access_Token=a",
            "x;access_token=a",
            "&&access_token=",
            "access_token=a=b",
            "+access_token=a",
            "access_token%20=a",
            "\taccess_token =a",
        ] {
            assert!(has_access_token_parameter(query), "{query}");
        }
        for query in [
            "",
            "x=access_token",
            "my_access_token=1",
            "access_token_hint=1",
            "token=a",
            "%zz",
            "access+token",
        ] {
            assert!(!has_access_token_parameter(query), "{query}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_query_panics(query in ".{0,64}") {
            has_access_token_parameter(&query);
        }
    }
}
