//! The headers of the Streamable HTTP transport, and functions that read singleton and hop-by-hop
//! headers.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, InvalidHeaderName},
};

/// `Mcp-Session-Id`: the session of a legacy request. See [`session`] for other names.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// `MCP-Protocol-Version`: the revision of a request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// `Mcp-Method`: the message's `method`, mirrored (2026-07-28).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// `Mcp-Name`: the message's `params.name` or `params.uri`, mirrored (2026-07-28).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// `Last-Event-ID`: the event after which a legacy client resumes a stream.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Returns the session header of a protocol: `<proto>-Session-Id`.
///
/// # Errors
/// Fails if `proto` has a character that is not allowed in header names.
pub fn session(proto: &str) -> Result<HeaderName, InvalidHeaderName> {
    HeaderName::try_from(format!("{proto}-session-id"))
}

/// A singleton header is repeated. Two readers could use different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header is repeated")]
pub struct RepeatedHeader;

/// Returns the value of a singleton header.
///
/// # Errors
/// Fails if the header is repeated.
pub fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, RepeatedHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(RepeatedHeader),
    }
}

/// Removes `Connection` and the headers that it names (RFC 9110 section 7.6.1). They are for the
/// next hop only. An intermediary that checks headers calls this first, because it does not forward
/// the removed headers.
///
/// Other hop-by-hop headers remain, and so does `Keep-Alive`, because the option `keep-alive` is
/// about the connection.
pub fn remove_connection_options(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let is_header = |option: &&[u8]| {
        ![&b"close"[..], b"keep-alive"]
            .iter()
            .any(|own| option.eq_ignore_ascii_case(own))
    };
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
    fn headers_named_by_connection_are_removed() {
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
    fn the_session_header_has_a_configurable_prefix() {
        assert_eq!(session("Mcp").unwrap(), SESSION);
        assert_eq!(
            session("Acme").unwrap(),
            HeaderName::from_static("acme-session-id")
        );
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
