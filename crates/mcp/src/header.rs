//! The header names of the Streamable HTTP transport, and how a header that must stand alone is read.

use http::{HeaderMap, HeaderName, HeaderValue, header::InvalidHeaderName};

/// `Mcp-Session-Id`: the session of a legacy request, under its default name. See [`session`].
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// `MCP-Protocol-Version`: the revision that a request follows.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// `Mcp-Method`: the message's `method`, mirrored (2026-07-28).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// `Mcp-Name`: the message's `params.name` or `params.uri`, mirrored (2026-07-28).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// `Last-Event-ID`: where a legacy client wants a stream resumed.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The session header of a protocol: `<proto>-Session-Id`.
///
/// # Errors
/// When `proto` has a character that no header name may have.
pub fn session(proto: &str) -> Result<HeaderName, InvalidHeaderName> {
    HeaderName::try_from(format!("{proto}-session-id"))
}

/// A header came more than once where one value is wanted: two readers could pick different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header came more than once")]
pub struct Repeated;

/// The one value of a header.
///
/// # Errors
/// When the header came more than once.
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Repeated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Repeated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E1: the header's prefix is configurable, and `Mcp` by default.
    #[test]
    fn the_session_header_takes_its_prefix_from_the_protocol() {
        assert_eq!(session("Mcp").unwrap(), SESSION);
        assert_eq!(session("Acme").unwrap(), HeaderName::from_static("acme-session-id"));
        assert!(session("a b").is_err());
        assert!(session("a\r\nb").is_err());
    }

    #[test]
    fn a_repeated_header_has_no_single_value() {
        let mut headers = HeaderMap::new();
        assert_eq!(single(&headers, &NAME), Ok(None));
        headers.append(NAME, HeaderValue::from_static("a"));
        assert_eq!(single(&headers, &NAME).unwrap().unwrap(), "a");
        headers.append(NAME, HeaderValue::from_static("a"));
        assert_eq!(single(&headers, &NAME), Err(Repeated));
    }
}
