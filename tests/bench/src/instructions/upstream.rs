//! The upstream of the counted requests, in the process of the client, so that a message of a
//! stream is sent when the client is ready for it.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::http::find;

/// The message of a stream, as a chunk.
const EVENT: &[u8] =
    b"54\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}\n\n\r\n";
/// The end of [`EVENT`] that the client receives.
pub(super) const EVENT_END: &[u8] = b"\n\n\r\n";
const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const SESSION: &[u8] = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: 0e3b5d5c-6a1f-4a0e-8d57-2f6c9b7e1a43\r\n\
    Content-Type: application/json\r\nContent-Length: 80\r\n\r\n\
    {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2025-11-25\",\"x\":\"0123456\"}}";
const RESULT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n\
    {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"0123456789abcdefg\"}]}}";

/// An upstream that runs as a task of this runtime.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    wanted: Arc<Notify>,
}

impl Upstream {
    /// Starts it on a free port.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        let upstream = Self {
            address: listener.local_addr()?,
            wanted: Arc::default(),
        };
        let wanted = Arc::clone(&upstream.wanted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&wanted)));
            }
        });
        Ok(upstream)
    }

    /// Sends one message on the open stream.
    pub(super) fn send_event(&self) {
        self.wanted.notify_one();
    }
}

/// Answers GET with a stream, `initialize` with a session, and everything else with a result.
async fn serve(mut stream: TcpStream, wanted: Arc<Notify>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(4096);
    loop {
        let length = loop {
            if let Some(length) = request_length(&received) {
                break length;
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let request: Vec<u8> = received.drain(..length).collect();
        if request.starts_with(b"GET ") {
            stream.write_all(STREAM).await?;
            loop {
                wanted.notified().await;
                stream.write_all(EVENT).await?;
            }
        }
        let opens_session = find(&request, b"\"initialize\"").is_some();
        stream
            .write_all(if opens_session { SESSION } else { RESULT })
            .await?;
    }
}

/// Returns the length of the first request, if it is complete.
fn request_length(received: &[u8]) -> Option<usize> {
    let head = find(received, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&received[..head])
        .ok()?
        .to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let length = head + length.unwrap_or(0);
    (received.len() >= length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_its_body() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET";
        assert_eq!(request_length(request), Some(request.len() - 3));
        assert_eq!(request_length(&request[..request.len() - 4]), None);
    }

    #[test]
    fn the_lengths_of_the_fixed_texts_are_right() {
        for response in [SESSION, RESULT] {
            assert_eq!(request_length(response), Some(response.len()));
        }
        let (length, chunk) = EVENT.split_at(find(EVENT, b"\r\n").unwrap());
        assert_eq!(
            usize::from_str_radix(std::str::from_utf8(length).unwrap(), 16).unwrap(),
            chunk.len() - 4
        );
        assert!(EVENT.ends_with(EVENT_END));
    }
}
