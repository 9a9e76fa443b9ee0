//! [`EventStream`]: the client's side of a stream.

use std::net::SocketAddr;

use anyhow::ensure;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::upstream::EVENT_END;
use crate::http::find;

/// An open stream.
pub(super) struct EventStream {
    stream: TcpStream,
    /// What follows the last message.
    received: Vec<u8>,
}

impl EventStream {
    /// Sends the request and reads the head of its response.
    pub(super) async fn open(address: SocketAddr, request: &[u8]) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let mut opened = Self {
            stream,
            received: Vec::with_capacity(1024),
        };
        opened.stream.write_all(request).await?;
        let head = opened.until(b"\r\n\r\n").await?;
        ensure!(
            head.starts_with(b"HTTP/1.1 200 "),
            "the stream was rejected: {}",
            head.escape_ascii()
        );
        Ok(opened)
    }

    /// Reads the next message.
    pub(super) async fn receive(&mut self) -> anyhow::Result<()> {
        self.until(EVENT_END).await.map(drop)
    }

    /// Reads up to this text.
    async fn until(&mut self, end: &[u8]) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.received, end) {
                return Ok(self.received.drain(..at + end.len()).collect());
            }
            ensure!(
                self.stream.read_buf(&mut self.received).await? > 0,
                "the stream ended"
            );
        }
    }
}
