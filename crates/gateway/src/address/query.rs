//! The removal of query parameters: tokens, and those that the address of the upstream sets itself.

use std::borrow::Cow;

use portcullis_metadata::syntax::{
    QUERY_SEPARATORS, is_access_token_parameter, query_parameter_name,
};

/// Removes `access_token` parameters from a query, in every spelling.
pub(crate) fn without_token(query: &str) -> Cow<'_, str> {
    without(query, is_access_token_parameter)
}

/// Removes the parameters that a server may read as a parameter of `other`: another spelling of its
/// name, an element or member of it (`k[]`, `k[0]`, `k[a][b]`, `k.a`), or a value that contains it.
pub(super) fn without_those_of<'a>(query: &'a str, other: &str) -> Cow<'a, str> {
    let fixed = |parameter| ParameterNames::derive(&query_parameter_name(parameter));
    let fixed: Vec<_> = other.split(QUERY_SEPARATORS).map(fixed).collect();
    without(query, |parameter| {
        let names = ParameterNames::derive(&query_parameter_name(parameter));
        fixed
            .iter()
            .any(|fixed| names.root == fixed.root || names.php == fixed.php)
    })
}

/// The variable names that servers derive from the name of a parameter, in lower case.
struct ParameterNames {
    /// The name in Rack, qs, Spring and ASP.NET: up to the first bracket or dot, without leading
    /// brackets.
    root: Vec<u8>,
    /// The name in PHP, which replaces a space, a dot and an unclosed bracket with an underscore.
    php: Vec<u8>,
}

impl ParameterNames {
    /// Derives the names from a decoded name.
    fn derive(name: &[u8]) -> Self {
        // Servers in C end a name at its first NUL.
        let name = name
            .split(|&b| b == 0)
            .next()
            .unwrap_or_default()
            .trim_ascii()
            .to_ascii_lowercase();
        let is_bracket = |b: &u8| matches!(b, b'[' | b']');
        let bare = &name[name
            .iter()
            .position(|b| !is_bracket(b))
            .unwrap_or(name.len())..];
        let root = bare
            .split(|b| is_bracket(b) || *b == b'.')
            .next()
            .unwrap_or_default()
            .trim_ascii_end()
            .to_vec();

        let opened = name.iter().position(|&b| b == b'[');
        let variable = match opened {
            Some(opened) if name[opened..].contains(&b']') => &name[..opened],
            _ => &name,
        };
        let php = variable
            .iter()
            .map(|&b| {
                if matches!(b, b' ' | b'.' | b'[') {
                    b'_'
                } else {
                    b
                }
            })
            .collect();
        Self { root, php }
    }
}

/// Removes the parameters for which `is_dropped` returns true, with the separator after each.
fn without(query: &str, is_dropped: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !query.split(QUERY_SEPARATORS).any(&is_dropped) {
        return query.into();
    }
    let mut kept = String::with_capacity(query.len());
    let mut ends_in_separator = false;
    for piece in query.split_inclusive(QUERY_SEPARATORS) {
        let parameter = piece.strip_suffix(QUERY_SEPARATORS).unwrap_or(piece);
        if !is_dropped(parameter) {
            kept.push_str(piece);
            ends_in_separator = parameter.len() < piece.len();
        }
    }
    if ends_in_separator && !query.ends_with(QUERY_SEPARATORS) {
        kept.pop();
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F9: every spelling of `access_token` is removed.
    #[test]
    fn tokens_are_removed() {
        let cases = [
            ("", ""),
            ("a=1&b=%20", "a=1&b=%20"),
            ("access_token=x", ""),
            ("access_token", ""),
            ("a=1&access_token=x&b=2", "a=1&b=2"),
            ("a=1;access_token=x;b=2", "a=1;b=2"),
            ("a=1&b=2;access_token=x", "a=1&b=2"),
            ("a=1&access_token=x;", "a=1&"),
            ("Access_Token=x&a", "a"),
            ("%61ccess%5Ftoken=x&a=%61ccess_token", "a=%61ccess_token"),
            ("+access_token=x", ""),
            ("access_token=x&access_token=y", ""),
            ("access_tokens=x", "access_tokens=x"),
        ];
        for (query, expected) in cases {
            assert_eq!(without_token(query), expected, "{query}");
        }
    }

    /// L1: a client cannot set an element or a member of such a parameter in the notation of any
    /// common server.
    #[test]
    fn elements_and_members_are_removed() {
        for parameter in [
            "key[]=evil",
            "key[0]=evil",
            "key[a][b]=evil",
            "key%5B%5D=evil",
            "key%5b0%5d=evil",
            "KEY[]=evil",
            "key.a=evil",
            "key%2Ea",
            "[key]=evil",
            "[[key]]=evil",
            "key]=evil",
            "key+[]=evil",
            "key%00x=evil",
            "api_key[]=evil",
            "api.key=evil",
            "api+key=evil",
            "api[key=evil",
            "api.key[x]=evil",
            "filter[other]=evil",
            "filter=evil",
        ] {
            let query = format!("a=1&{parameter}");
            assert_eq!(
                without_those_of(&query, "key=v&api_key=w&filter[name]=x"),
                "a=1",
                "{parameter}"
            );
        }
        for parameter in [
            "keys[]=1",
            "a[key]=1",
            "a.key=1",
            "apikey=1",
            "filters=1",
            "=1",
            "[]=1",
        ] {
            let query = format!("a=1&{parameter}");
            assert_eq!(
                without_those_of(&query, "key=v&api_key=w&filter[name]=x"),
                query,
                "{parameter}"
            );
        }
    }

    /// L1: a client cannot set a parameter of the upstream's address.
    #[test]
    fn parameters_of_the_address_are_removed() {
        for (query, expected) in [
            ("a=1", "a=1"),
            ("key=evil&a=1", "a=1"),
            ("a=1&k%65y=evil", "a=1"),
            ("a=1;KEY=evil", "a=1"),
            ("key&tenant=x", ""),
            ("keys=1", "keys=1"),
        ] {
            assert_eq!(
                without_those_of(query, "key=v&tenant=t"),
                expected,
                "{query}"
            );
        }
    }
}
