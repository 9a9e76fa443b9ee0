//! Strict parsing of URLs that are compared as strings.

use url::{ParseError, Url};

/// Why a string is not a valid identifier.
pub(crate) enum UriError {
    NotAUrl(ParseError),
    Irregular,
}

/// Parses an absolute URL that follows RFC 3986.
///
/// The `url` crate follows the WHATWG rules for URLs typed by people: it removes tabs and line
/// breaks, replaces backslashes by slashes, and adds missing slashes. Such a URL would mean one
/// thing as a string and another as an address, so it is rejected.
pub(crate) fn parse(text: &str) -> Result<Url, UriError> {
    let url = Url::parse(text).map_err(UriError::NotAUrl)?;
    let is_printable = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_printable && !authority(text).is_empty() {
        Ok(url)
    } else {
        Err(UriError::Irregular)
    }
}

/// Returns whether the authority contains an `@`, even if the user information before it is empty.
pub(crate) fn has_user_information(text: &str) -> bool {
    authority(text).contains('@')
}

/// Returns the path as written, including dot segments. It is empty if there is no path.
pub(crate) fn path(text: &str) -> &str {
    let rest = &after_scheme(text)[authority(text).len()..];
    &rest[..rest.find(['?', '#']).unwrap_or(rest.len())]
}

fn authority(text: &str) -> &str {
    let rest = after_scheme(text);
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

fn after_scheme(text: &str) -> &str {
    // The check of the scheme's characters excludes a "://" that occurs later in the URL.
    match text.split_once("://") {
        Some((scheme, rest))
            if scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) =>
        {
            rest
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_returned_as_written() {
        for (text, authority_part, path_part) in [
            ("https://a.example", "a.example", ""),
            ("https://a.example?x=/y", "a.example", ""),
            (
                "https://u@a.example:1/b/../c?d#e/f",
                "u@a.example:1",
                "/b/../c",
            ),
            ("https://[::1]:8080/?://", "[::1]:8080", "/"),
        ] {
            assert_eq!(authority(text), authority_part, "{text}");
            assert_eq!(path(text), path_part, "{text}");
        }
    }

    #[test]
    fn urls_that_need_repair_are_rejected() {
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
