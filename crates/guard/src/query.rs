use std::borrow::Cow;

use percent_encoding::percent_decode;

/// What servers part the parameters of a query at. Few still take the semicolon, and one is enough.
pub const PARAMETER_SEPARATORS: [char; 2] = ['&', ';'];

/// The name of one parameter of a query as a lenient server reads it: decoded, and without blanks around it.
pub fn parameter_name(parameter: &str) -> Cow<'_, [u8]> {
    let name = parameter.split('=').next().unwrap_or_default();
    if !name.contains(['%', '+', ' ']) {
        return name.as_bytes().into();
    }
    let spaced = name.replace('+', " ");
    percent_decode(spaced.as_bytes()).collect::<Vec<_>>().trim_ascii().to_vec().into()
}

/// Whether this parameter of a query is `access_token` (RFC 6750 section 2.3), in any spelling that a server could read
/// as it.
pub fn is_access_token(parameter: &str) -> bool {
    parameter_name(parameter).eq_ignore_ascii_case(b"access_token")
}

/// Whether a query has such a parameter.
pub(crate) fn has_access_token(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split(PARAMETER_SEPARATORS).any(is_access_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F9: the parameter is found behind any spelling that a server could read as its name.
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
        ] {
            assert!(has_access_token(Some(query)), "{query}");
        }
        for query in
            ["", "x=access_token", "my_access_token=1", "access_token_hint=1", "token=a", "%zz", "access+token"]
        {
            assert!(!has_access_token(Some(query)), "{query}");
        }
        assert!(!has_access_token(None));
    }
}
