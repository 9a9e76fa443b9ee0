use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU16, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{HttpResponse, Request, TIMEOUT};

/// An HTTP/1.1 connection that sends arbitrary bytes and reads one response at a time.
///
/// All methods panic if nothing arrives in time.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The current response is one to HEAD and has no body.
    head_only: bool,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// Panics if the server does not accept.
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server accepts");
        Self::on(stream)
    }

    /// Connects from a loopback address of its own: a server sums the equal rejections of one
    /// address.
    ///
    /// # Panics
    /// Panics if the server does not accept.
    pub async fn open_as_new_client(address: SocketAddr) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let client = SocketAddr::from((Ipv4Addr::new(127, 1, high, low), 0));
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(client).expect("a loopback address");
        Self::on(socket.connect(address).await.expect("the server accepts"))
    }

    fn on(stream: TcpStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            head_only: false,
        }
    }

    /// Sends bytes. It is not an error if the server closes the connection before it has read
    /// everything.
    pub async fn write(&mut self, bytes: &[u8]) {
        self.head_only = bytes.starts_with(b"HEAD ");
        let written = timeout(TIMEOUT, self.stream.write_all(bytes)).await;
        let _ = written.expect("the server reads in time");
    }

    /// Sends bytes and reads one response.
    ///
    /// # Panics
    /// Panics if the connection ends without a response.
    pub async fn exchange(&mut self, bytes: &[u8]) -> HttpResponse {
        self.write(bytes).await;
        self.response().await.expect("a response")
    }

    /// Sends a request and reads its response.
    pub async fn send(&mut self, request: &Request) -> HttpResponse {
        self.exchange(&request.to_bytes()).await
    }

    /// Reads the next response. Returns `None` if the connection ends before it.
    ///
    /// # Panics
    /// Panics if the connection ends within a response.
    pub async fn response(&mut self) -> Option<HttpResponse> {
        let mut response = self.head().await?;
        if self.head_only || matches!(response.status, 204 | 304) {
            return Some(response);
        }
        if let Some(length) = response.header("content-length") {
            let length = length.parse().expect("a length");
            while self.received.len() < length {
                assert!(
                    self.more().await,
                    "the connection ended in a body: {response:?}"
                );
            }
            response.body = self.received.drain(..length).collect();
        } else if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                response.body.extend_from_slice(&chunk);
            }
        } else {
            while self.more().await {}
            response.body = std::mem::take(&mut self.received);
        }
        Some(response)
    }

    /// Reads until the connection ends. Returns the response if it is complete: a server that was
    /// killed may have sent a part of it. The response must have `Content-Length`.
    pub async fn complete_response(&mut self) -> Option<HttpResponse> {
        while self.more().await {}
        let (mut response, start) = parse_head(&self.received)?;
        let length: usize = response.header("content-length")?.parse().ok()?;
        response.body = self.received.get(start..start + length)?.to_vec();
        Some(response)
    }

    /// Reads the head of the next response. Returns `None` if the connection ends before it.
    ///
    /// # Panics
    /// Panics if the connection ends within the head.
    pub async fn head(&mut self) -> Option<HttpResponse> {
        loop {
            if let Some((response, length)) = parse_head(&self.received) {
                self.received.drain(..length);
                if !(100..200).contains(&response.status) {
                    return Some(response);
                }
            } else if !self.more().await {
                assert!(
                    self.received.is_empty(),
                    "the connection ended in the head of a response: {:?}",
                    self.received
                );
                return None;
            }
        }
    }

    /// Reads the next chunk of a chunked body. Returns `None` after the last one.
    ///
    /// # Panics
    /// Panics if the connection ends before the last chunk, or the coding is invalid.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((chunk, length)) = parse_chunk(&self.received) {
                self.received.drain(..length);
                return (!chunk.is_empty()).then_some(chunk);
            }
            assert!(self.more().await, "the connection ended in a chunked body");
        }
    }

    /// Reads the next chunk of an event stream. Skips the comments that the server adds to a stream
    /// without events. Returns `None` after the last chunk.
    ///
    /// # Panics
    /// Panics as [`chunk`](Self::chunk) does.
    pub async fn event(&mut self) -> Option<Vec<u8>> {
        loop {
            let chunk = self.chunk().await;
            if chunk.as_deref() != Some(b":\n\n") {
                return chunk;
            }
        }
    }

    /// Reads until the connection ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.received)
    }

    /// Asserts that the connection ends without further data.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_closed(&mut self) {
        let more = self.more().await;
        assert!(
            !more,
            "received {}",
            String::from_utf8_lossy(&self.received)
        );
        assert!(
            self.received.is_empty(),
            "received {}",
            String::from_utf8_lossy(&self.received)
        );
    }

    /// Reads more data. Returns `false` at the end or after a reset.
    async fn more(&mut self) -> bool {
        let read = timeout(TIMEOUT, self.stream.read_buf(&mut self.received)).await;
        matches!(read.expect("data or the end in time"), Ok(count) if count > 0)
    }
}

/// Returns a complete head, as a response without a body, and its length.
fn parse_head(bytes: &[u8]) -> Option<(HttpResponse, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = response.parse(bytes).expect("an HTTP response")
    else {
        return None;
    };
    let status = response.code.expect("a status");
    let headers = response
        .headers
        .iter()
        .map(|field| {
            (
                field.name.to_ascii_lowercase(),
                String::from_utf8_lossy(field.value).into_owned(),
            )
        })
        .collect();
    Some((
        HttpResponse {
            status,
            headers,
            body: Vec::new(),
        },
        length,
    ))
}

/// Returns a complete chunk and its length on the wire; the last chunk is empty.
fn parse_chunk(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let line_end = bytes.windows(2).position(|window| window == b"\r\n")?;
    let size = std::str::from_utf8(&bytes[..line_end])
        .expect("a chunk size")
        .split(';')
        .next()
        .unwrap_or_default();
    let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
    let end = line_end + 2 + size;
    let chunk = bytes
        .get(line_end + 2..end + 2)?
        .strip_suffix(b"\r\n")
        .expect("the end of a chunk");
    Some((chunk.to_vec(), end + 2))
}
