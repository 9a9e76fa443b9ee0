//! The header names of the Streamable HTTP transport, how a header that must stand alone is read, and which ones end
//! with their connection.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, InvalidHeaderName},
};

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
pub struct RepeatedHeader;

/// The one value of a header.
///
/// # Errors
/// When the header came more than once.
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, RepeatedHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(RepeatedHeader),
    }
}

/// Removes `Connection` and the headers that it names (RFC 9110 section 7.6.1): they are for the next hop alone. An
/// intermediary that judges headers does this first, since no hop behind it would see what was judged.
///
/// `Keep-Alive` and the other headers that concern a connection without being named are left.
pub fn remove_connection_options(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let is_header = |option: &&[u8]| ![&b"close"[..], b"keep-alive"].iter().any(|own| option.eq_ignore_ascii_case(own));
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .filter(is_header)
        .filter_map(|option| HeaderName::from_bytes(option).ok())
        .collect();
    headers.remove(CONNECTION);
    for name in named {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_names_goes_with_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "Keep-Alive, MCP-Name"),
            ("connection", "\t mcp-method ,, a b,"),
            ("mcp-name", "x"),
            ("mcp-name", "y"),
            ("mcp-method", "x"),
            ("keep-alive", "timeout=5"),
            ("accept", "*/*"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_connection_options(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "keep-alive"]);
    }

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
        assert_eq!(single(&headers, &NAME), Err(RepeatedHeader));
    }
}
