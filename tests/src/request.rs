use std::net::SocketAddr;

use serde_json::json;

use crate::{Connection, HttpResponse, call_message};

/// A builder of HTTP/1.1 requests. All parts are sent unchanged, well formed or not.
#[derive(Clone)]
pub struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
    /// No `Content-Length` is added.
    is_framed: bool,
}

impl Request {
    /// Creates a request with a request line and a loopback `Host`.
    pub fn new(method: &str, target: &str) -> Self {
        Self::without_host(method, target).header("Host", "127.0.0.1")
    }

    /// Creates a request with a request line only.
    pub fn without_host(method: &str, target: &str) -> Self {
        Self {
            head: format!("{method} {target} HTTP/1.1\r\n").into_bytes(),
            body: Vec::new(),
            is_framed: false,
        }
    }

    /// Creates a POST with the headers of an MCP client, without a token.
    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// Creates a call of the method `echo` in a session.
    pub fn echo(target: &str, token: &str, session: &str) -> Self {
        Self::post(target, call_message(2, "echo", &json!({})))
            .bearer(token)
            .session(session)
    }

    /// Creates a GET for the event stream of a session.
    pub fn listen(target: &str, token: &str, session: &str) -> Self {
        Self::new("GET", target)
            .header("Accept", "text/event-stream")
            .bearer(token)
            .session(session)
    }

    /// Creates a DELETE of a session.
    pub fn delete(target: &str, token: &str, session: &str) -> Self {
        Self::new("DELETE", target).bearer(token).session(session)
    }

    /// Appends a header field.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.is_framed |= name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding");
        self.head.extend_from_slice(name.as_bytes());
        self.head.extend_from_slice(b": ");
        self.head.extend_from_slice(value.as_ref());
        self.head.extend_from_slice(b"\r\n");
        self
    }

    /// Adds the bearer token.
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// Adds the session header.
    pub fn session(self, identifier: &str) -> Self {
        self.header("Mcp-Session-Id", identifier)
    }

    /// Sets the body. `Content-Length` is added unless the request has it or `Transfer-Encoding`.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Appends bytes to the head: complete lines with their line ends. A `Content-Length` in them
    /// does not replace the one that is added: see [`without_length`](Self::without_length).
    pub fn raw_lines(mut self, lines: impl AsRef<[u8]>) -> Self {
        self.head.extend_from_slice(lines.as_ref());
        self
    }

    /// Adds no `Content-Length`.
    pub fn without_length(mut self) -> Self {
        self.is_framed = true;
        self
    }

    /// Returns the bytes that are sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        if !self.is_framed && (!self.body.is_empty() || bytes.starts_with(b"POST")) {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends the request on a new connection.
    ///
    /// # Panics
    /// Panics if no complete response arrives in time.
    pub async fn send(&self, address: SocketAddr) -> HttpResponse {
        send_bytes(address, &self.to_bytes()).await
    }
}

/// Sends bytes on a new connection and reads one response.
///
/// # Panics
/// Panics if no complete response arrives in time.
pub async fn send_bytes(address: SocketAddr, bytes: &[u8]) -> HttpResponse {
    Connection::open(address).await.exchange(bytes).await
}
