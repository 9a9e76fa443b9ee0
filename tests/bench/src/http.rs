use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const HEAD_END: &[u8] = b"\r\n\r\n";
/// The end of a chunked body without trailers.
const CHUNKED_END: &[u8] = b"\r\n0\r\n\r\n";

/// A minimal HTTP/1.1 client: one connection that sends encoded requests and reads complete
/// responses.
pub(super) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

pub(super) struct Response<'a> {
    pub(super) status: u16,
    head: &'a str,
    /// The body as received: a chunked one with its framing.
    pub(super) body: &'a [u8],
}

impl Connection {
    /// Connects, without Nagle's algorithm.
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("{address} does not accept"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::with_capacity(4096),
        })
    }

    /// Sends a request and reads its complete response.
    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<Response<'_>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let mut head_end = None;
        let mut length = None;
        loop {
            ensure!(
                self.stream.read_buf(&mut self.received).await? > 0,
                "the connection ended within a response"
            );
            if head_end.is_none() {
                head_end = find(&self.received, HEAD_END);
                length = match head_end {
                    Some(end) => content_length(std::str::from_utf8(&self.received[..end])?),
                    None => None,
                };
            }
            let Some(end) = head_end else { continue };
            let body = &self.received[end + HEAD_END.len()..];
            let is_complete = match length {
                Some(length) => {
                    ensure!(
                        body.len() <= length,
                        "a response is longer than its Content-Length"
                    );
                    body.len() == length
                }
                None => self.received.ends_with(CHUNKED_END),
            };
            if is_complete {
                return Response::read(&self.received, end);
            }
        }
    }

    /// Sends a GET request.
    pub(super) async fn get(&mut self, path: &str) -> anyhow::Result<Response<'_>> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())
            .await
    }
}

impl<'a> Response<'a> {
    /// Reads a response whose head ends at `head_end`.
    fn read(received: &'a [u8], head_end: usize) -> anyhow::Result<Self> {
        let head = std::str::from_utf8(&received[..head_end])?;
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok());
        Ok(Self {
            status: status.context("the response is not HTTP/1.1")?,
            head,
            body: &received[head_end + HEAD_END.len()..],
        })
    }

    /// Returns the value of a header field.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }

    /// Fails unless the status is 200.
    pub(super) fn ok(self) -> anyhow::Result<Self> {
        ensure!(
            self.status == 200,
            "a response is not 200:\n{}\n\n{}",
            self.head,
            String::from_utf8_lossy(self.body)
        );
        Ok(self)
    }
}

/// Returns the length of the body, or `None` for a chunked one.
fn content_length(head: &str) -> Option<usize> {
    header(head, "content-length")?.parse().ok()
}

/// Returns the value of the first field with this name.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields
        .filter(|(held, _)| held.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .next()
}

/// Returns the position of the first occurrence. `wanted` must not be empty.
pub(super) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}
