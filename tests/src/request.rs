use std::net::SocketAddr;

use crate::{Answer, Connection};

/// A request in the making. What it is given goes over the wire as it is, well formed or not.
#[derive(Clone)]
pub struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
    has_length: bool,
}

impl Request {
    /// A request with its line and a loopback `Host`.
    pub fn new(method: &str, target: &str) -> Self {
        Self::without_host(method, target).header("Host", "127.0.0.1")
    }

    /// A request with nothing but its line.
    pub fn without_host(method: &str, target: &str) -> Self {
        Self { head: format!("{method} {target} HTTP/1.1\r\n").into_bytes(), body: Vec::new(), has_length: false }
    }

    /// A POST with what an MCP client sends beside its token.
    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// Adds a header field, after those that are there.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.has_length |=
            name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding");
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

    /// Sets the body. Its length is announced, unless a field does so already.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds bytes to the head as they are: whole lines, with their ends.
    pub fn raw_lines(mut self, lines: impl AsRef<[u8]>) -> Self {
        self.head.extend_from_slice(lines.as_ref());
        self
    }

    /// The bytes on the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        if !self.has_length && (!self.body.is_empty() || bytes.starts_with(b"POST")) {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends it on a connection of its own.
    ///
    /// # Panics
    /// When no complete answer comes in time.
    pub async fn send(&self, address: SocketAddr) -> Answer {
        exchange(address, &self.to_bytes()).await
    }
}

/// Sends bytes on a connection of their own and reads one answer.
///
/// # Panics
/// When no complete answer comes in time.
pub async fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    Connection::open(address).await.exchange(bytes).await
}
