//! Stricter reading of identifiers that are compared as text.

use url::{ParseError, Url};

/// Why a text is no identifier.
pub(crate) enum UriError {
    NotAUrl(ParseError),
    Irregular,
}

/// Parses an absolute URL that is written as RFC 3986 writes it.
///
/// The `url` crate follows the WHATWG rules for what people type: it drops tabs and line breaks, takes
/// backslashes for slashes and adds missing ones. An identifier that needs such repairs would be one thing
/// as a text and another as an address.
pub(crate) fn parse(text: &str) -> Result<Url, UriError> {
    let url = Url::parse(text).map_err(UriError::NotAUrl)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && !authority(text).is_empty() { Ok(url) } else { Err(UriError::Irregular) }
}

/// Whether the authority has an `@`, also in front of nothing.
pub(crate) fn has_user_information(text: &str) -> bool {
    authority(text).contains('@')
}

/// The path as it was written, dot segments and all; empty when there is none.
pub(crate) fn path(text: &str) -> &str {
    let rest = &after_scheme(text)[authority(text).len()..];
    &rest[..rest.find(['?', '#']).unwrap_or(rest.len())]
}

fn authority(text: &str) -> &str {
    let rest = after_scheme(text);
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

fn after_scheme(text: &str) -> &str {
    // The scheme's characters exclude all others that could make "://" appear before its end.
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) => rest,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_as_written() {
        for (text, authority_part, path_part) in [
            ("https://a.example", "a.example", ""),
            ("https://a.example?x=/y", "a.example", ""),
            ("https://u@a.example:1/b/../c?d#e/f", "u@a.example:1", "/b/../c"),
            ("https://[::1]:8080/?://", "[::1]:8080", "/"),
        ] {
            assert_eq!((authority(text), path(text)), (authority_part, path_part), "{text}");
        }
    }

    #[test]
    fn texts_that_need_repair_are_refused() {
        for text in [
            "https:a.example",
            "https:/a.example",
            "https:///a.example",
            "https:\\\\a.example",
            "https://a.example\\b",
            " https://a.example",
            "https://a.example ",
            "https://a.exa\nmple",
            "https://a.example/\t",
            "https://ä.example",
            "https:a://b.example",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
