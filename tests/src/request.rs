use std::net::SocketAddr;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{Answer, PATIENCE};

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
    let mut stream = TcpStream::connect(address).await.expect("the server accepts");
    exchange_on(&mut stream, bytes).await
}

/// Sends bytes on an open connection and reads one answer.
///
/// # Panics
/// When no complete answer comes in time.
pub async fn exchange_on<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Answer {
    timeout(PATIENCE, async {
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes).await;
        read_answer(stream, bytes.starts_with(b"HEAD ")).await
    })
    .await
    .expect("an answer within the patience of the scenario")
}

/// Reads one answer from an open connection on which a request was sent before.
///
/// # Panics
/// When no complete answer comes in time.
pub async fn read_answer_on<S: AsyncRead + Unpin>(stream: &mut S) -> Answer {
    timeout(PATIENCE, read_answer(stream, false)).await.expect("an answer within the patience of the scenario")
}

async fn read_answer<S: AsyncRead + Unpin>(stream: &mut S, head_only: bool) -> Answer {
    let mut received = Vec::new();
    let (mut answer, head_length) = loop {
        if let Some((answer, length)) = parse_head(&received) {
            if (100..200).contains(&answer.status) {
                received.drain(..length);
                continue;
            }
            break (answer, length);
        }
        assert!(read_more(stream, &mut received).await, "the connection ended in an answer's head: {received:?}");
    };
    let mut rest = received.split_off(head_length);
    if head_only || matches!(answer.status, 204 | 304) {
        return answer;
    }
    if let Some(length) = answer.header("content-length").map(|length| length.parse::<usize>().expect("a length")) {
        while rest.len() < length {
            assert!(read_more(stream, &mut rest).await, "the connection ended in a body: {answer:?}");
        }
        rest.truncate(length);
        answer.body = rest;
    } else if answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        answer.body = loop {
            if let Some(body) = dechunk(&rest) {
                break body;
            }
            assert!(read_more(stream, &mut rest).await, "the connection ended in a chunked body: {answer:?}");
        };
    } else {
        while read_more(stream, &mut rest).await {}
        answer.body = rest;
    }
    answer
}

async fn read_more<S: AsyncRead + Unpin>(stream: &mut S, into: &mut Vec<u8>) -> bool {
    matches!(stream.read_buf(into).await, Ok(count) if count > 0)
}

fn parse_head(bytes: &[u8]) -> Option<(Answer, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = response.parse(bytes).expect("an HTTP answer") else { return None };
    let status = response.code.expect("a status");
    let headers = response
        .headers
        .iter()
        .map(|field| (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).into_owned()))
        .collect();
    Some((Answer { status, headers, body: Vec::new() }, length))
}

/// The body of a complete chunked coding, or `None` when more has to come.
fn dechunk(mut coded: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = coded.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&coded[..line_end]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
        coded = &coded[line_end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(coded.get(..size)?);
        coded = coded.get(size + 2..)?;
    }
}
