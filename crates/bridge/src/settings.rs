//! [`BridgeSettings`] and [`BridgeTransport`]: the settings of a bridge.

use std::{error::Error, fmt, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use portcullis_client::error_chain;
use portcullis_mcp::header as names;

/// The settings of a [`Bridge`](crate::Bridge).
///
/// `Debug` shows the names of the additional headers, not their values.
#[derive(Clone)]
#[non_exhaustive]
pub struct BridgeSettings {
    /// The header for the session identifier of a session. `Mcp-Session-Id` by default.
    pub session_header: HeaderName,
    /// Additional headers of every request. Empty by default. An `Authorization` header replaces
    /// the token manager's token. See [`is_custom_header`](Self::is_custom_header).
    pub headers: HeaderMap,
    /// The HTTP transports to use. Both by default.
    pub transport: BridgeTransport,
    /// The maximum size of one message in either direction, in bytes. 64 MiB by default. A larger
    /// request is answered with an error.
    pub max_message: usize,
    /// The maximum size of all messages in progress, in bytes: requests until they are answered,
    /// arriving messages of the server, and messages that the client has not read. 256 MiB by
    /// default, and at least three times [`max_message`](Self::max_message). A request of the
    /// client that does not fit is answered with an error; messages of the server wait. The
    /// client's notifications and responses are not counted; at most `max_message` bytes of them
    /// wait.
    pub message_budget: usize,
    /// The maximum number of the client's requests in progress. 256 by default. Further requests
    /// wait; responses, notifications and cancellations do not.
    pub max_requests: usize,
    /// The maximum number of waiting requests. 1,024 by default. Further requests are answered with
    /// an error.
    pub max_waiting_requests: usize,
    /// The time limit for the head of a response. 5 min by default. A stream that has begun has no
    /// limit.
    pub timeout: Duration,
    /// The time limit for requests in progress when the input ends. 1.8 s by default, because
    /// clients usually wait for 2 s.
    pub grace: Duration,
    /// What a user can do about an error, for the end of the error's text. It begins with its own
    /// punctuation, and is empty if there is no advice, as by default. The errors are
    /// [`McpError`](portcullis_mcp_client::McpError) and
    /// [`MessageTooLarge`](crate::MessageTooLarge).
    pub advice: fn(&(dyn Error + 'static)) -> String,
}

/// Which HTTP transports a [`Bridge`](crate::Bridge) uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BridgeTransport {
    /// Streamable HTTP, or HTTP with SSE if the server rejects the handshake as servers of
    /// 2024-11-05 do.
    #[default]
    Any,
    /// Only Streamable HTTP (2025-03-26 and later).
    StreamableHttp,
    /// Only HTTP with SSE (2024-11-05). Messages of 2026-07-28 are rejected.
    HttpSse,
}

impl BridgeSettings {
    /// Whether a header can be in [`headers`](Self::headers). The headers that the transport sets
    /// cannot.
    pub fn is_custom_header(name: &HeaderName) -> bool {
        const TAKEN: [HeaderName; 13] = [
            header::ACCEPT,
            header::CONNECTION,
            header::CONTENT_ENCODING,
            header::CONTENT_LENGTH,
            header::CONTENT_TYPE,
            header::TE,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
            names::LAST_EVENT_ID,
            names::METHOD,
            names::NAME,
            names::PROTOCOL_VERSION,
            names::SESSION,
        ];
        !TAKEN.contains(name)
    }

    /// The text of an error for the user: its causes and the advice.
    pub(crate) fn describe(&self, error: &(dyn Error + 'static)) -> String {
        error_chain(error) + &(self.advice)(error)
    }

    /// The user's own `Authorization` header, which replaces the token.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.headers.get(header::AUTHORIZATION)
    }
}

impl Default for BridgeSettings {
    fn default() -> Self {
        Self {
            session_header: names::SESSION,
            headers: HeaderMap::new(),
            transport: BridgeTransport::default(),
            max_message: 64 * 1024 * 1024,
            message_budget: 256 * 1024 * 1024,
            max_requests: 256,
            max_waiting_requests: 1024,
            timeout: Duration::from_secs(5 * 60),
            grace: Duration::from_millis(1_800),
            advice: |_| String::new(),
        }
    }
}

impl fmt::Debug for BridgeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("BridgeSettings")
            .field("session_header", &self.session_header)
            .field("headers", &headers)
            .field("transport", &self.transport)
            .field("max_message", &self.max_message)
            .field("message_budget", &self.message_budget)
            .field("max_requests", &self.max_requests)
            .field("max_waiting_requests", &self.max_waiting_requests)
            .field("timeout", &self.timeout)
            .field("grace", &self.grace)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Additional headers cannot replace those of the transport.
    #[test]
    fn the_transports_headers_are_reserved() {
        for name in [
            "accept",
            "content-type",
            "mcp-session-id",
            "last-event-id",
            "mcp-method",
            "te",
        ] {
            assert!(
                !BridgeSettings::is_custom_header(&HeaderName::from_static(name)),
                "{name}"
            );
        }
        for name in ["authorization", "x-api-key", "user-agent"] {
            assert!(
                BridgeSettings::is_custom_header(&HeaderName::from_static(name)),
                "{name}"
            );
        }
    }

    /// J3: Debug shows the names of headers, not their values.
    #[test]
    fn debug_shows_no_header_values() {
        let headers = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer hush"),
        )]);
        let settings = BridgeSettings {
            headers,
            ..BridgeSettings::default()
        };
        assert_eq!(settings.authorization().unwrap(), "Bearer hush");
        assert!(BridgeSettings::default().authorization().is_none());
        let shown = format!("{settings:?}");
        assert!(shown.contains("authorization"), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }
}
