//! Stricter reading of identifiers that are compared as text.

use url::{ParseError, Url};

/// Parses an absolute URL that is written as RFC 3986 writes it.
///
/// The `url` crate follows the WHATWG rules for what people type: it drops tabs and line breaks, takes
/// backslashes for slashes and adds missing ones. An identifier that needs such repairs would be one thing
/// as a text and another as an address.
pub(crate) fn parse(text: &str) -> Result<Url, ParseError> {
    let url = Url::parse(text)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && !authority(text).is_empty() { Ok(url) } else { Err(ParseError::InvalidDomainCharacter) }
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
