//! [`Reply`]: a response of a network that a test scripts.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::resource_urls::PRM_URL;

/// A response of a [`FetchFn`](crate::FetchFn).
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The body in the pieces in which it arrives.
    pub(crate) pieces: Vec<Bytes>,
    /// Whether the body breaks after its pieces.
    pub(crate) is_interrupted: bool,
}

impl Reply {
    /// Creates a response with a status and an empty body.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a status from 100 to 999");
        Self {
            status,
            headers: HeaderMap::new(),
            pieces: Vec::new(),
            is_interrupted: false,
        }
    }

    /// Creates a response with an `application/json` body.
    pub fn json(status: u16, body: impl ToString) -> Self {
        Self::status(status)
            .body(&[body.to_string().as_bytes()])
            .header(header::CONTENT_TYPE, "application/json")
    }

    /// Creates an event stream that arrives in pieces.
    pub fn events(pieces: &[&str]) -> Self {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        Self::status(200)
            .body(&pieces)
            .header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")
    }

    /// Creates a 401 with a `Bearer` challenge that names
    /// [`PRM_URL`](crate::protected_resource::PRM_URL).
    pub fn challenge() -> Self {
        let value =
            format!(r#"Bearer realm="mcp", resource_metadata="{PRM_URL}", scope="mcp:tools""#);
        Self::status(401).header(header::WWW_AUTHENTICATE, &value)
    }

    /// Sets a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers
            .insert(name, HeaderValue::from_str(value).expect("a header value"));
        self
    }

    /// Lets the body break after its pieces, as if the connection was interrupted.
    #[must_use]
    pub fn interrupted(mut self) -> Self {
        self.is_interrupted = true;
        self
    }

    fn body(mut self, pieces: &[&[u8]]) -> Self {
        self.pieces = pieces
            .iter()
            .map(|piece| Bytes::copy_from_slice(piece))
            .collect();
        self
    }
}
