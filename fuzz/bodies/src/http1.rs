//! The HTTP/1.1 client connection against a server that sends arbitrary bytes.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Method, StatusCode, uri::PathAndQuery};
use portcullis_http1::{Connection, RequestBuilder};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The input is everything that a server sends. The response does not depend on how the bytes are
/// split.
pub fn http1_response(data: &[u8]) {
    let whole = receive(data, data.len().max(1));
    for piece in [1, 7] {
        assert_eq!(receive(data, piece), whole);
    }
}

/// The input is a chunked body. If it is valid, its data is not longer than the input.
pub fn http1_chunked_body(data: &[u8]) {
    let response = [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        data,
    ]
    .concat();
    http1_response(&response);
    if let Some(Received {
        body: Some(body), ..
    }) = receive(&response, response.len())
    {
        assert!(body.len() < data.len());
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Received {
    status: StatusCode,
    /// `None` if the body is invalid or incomplete.
    body: Option<Vec<u8>>,
}

/// Reads a response from these bytes, which arrive in parts of this size. `None` if there is none.
fn receive(data: &[u8], piece: usize) -> Option<Received> {
    let server = Server {
        data: data.to_vec(),
        piece,
        has_request: false,
    };
    let request =
        RequestBuilder::new(&Method::GET, &PathAndQuery::from_static("/")).body(Bytes::new());
    let (response, mut connection) = ready(Connection::new(server).send(request))?.ok()?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(received) = ready(connection.next_data())? {
        let Ok(received) = received else {
            return Some(Received { status, body: None });
        };
        body.extend_from_slice(&received);
    }
    Some(Received {
        status,
        body: Some(body),
    })
}

/// The output of a future that never waits, because the server's bytes are all there. `None` if it
/// waits.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Sends its bytes in pieces once a request was written, and then closes the connection.
struct Server {
    data: Vec<u8>,
    piece: usize,
    has_request: bool,
}

impl AsyncRead for Server {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_request {
            return Poll::Pending;
        }
        let length = self.piece.min(self.data.len()).min(buffer.remaining());
        buffer.put_slice(&self.data[..length]);
        self.data.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_request = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
