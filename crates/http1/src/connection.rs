use std::{
    fmt, io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::Response;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use crate::{
    ConnectionError, Request, SendError,
    response::{BodyReader, ResponseHead, ResponseReader},
};

/// The initial size of a read. It doubles whenever a read fills the buffer.
const INITIAL_READ: usize = 4 * 1024;
/// The maximum size of a read.
const MAX_READ: usize = 64 * 1024;
/// The buffer grows before a read if it has less free space than this.
const MIN_READ: usize = 1024;

/// One HTTP/1.1 connection to a server, over any stream: TCP, TLS, a Unix socket.
///
/// The task that uses the connection also drives it: there is no background task. One request is in
/// progress at a time. [`send`](Self::send) takes the connection and returns it with the head of
/// the response. Then read the body with [`next_data`](Self::next_data) up to its end. The
/// connection can be used again if [`is_reusable`](Self::is_reusable) is true. Dropping it closes
/// it.
///
/// It sets no time limits and does not limit the size of a body. Wrap its futures in timeouts.
pub struct Connection<S>(Box<State<S>>);

/// The state is boxed so that the futures and bodies that hold a connection are small.
struct State<S> {
    stream: S,
    /// Bytes that were received and not consumed yet.
    read_buffer: BytesMut,
    read_size: usize,
    /// The request in progress, until it is sent completely or sending fails.
    request: Option<Request>,
    /// The rest of the response body.
    body: BodyReader,
    /// Whether the server keeps the connection open, as far as is known.
    keep_alive: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Returns a connection over `stream`, on which nothing was sent yet.
    pub fn new(stream: S) -> Self {
        Self(Box::new(State {
            stream,
            read_buffer: BytesMut::new(),
            read_size: INITIAL_READ,
            request: None,
            body: BodyReader::Complete,
            keep_alive: true,
        }))
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// Interim responses (1xx, except 101) are discarded. The headers are as received, including
    /// those of the connection (`Connection`, `Transfer-Encoding`), with one exception:
    /// `Content-Length` is one number without leading zeros, and removed if it is not the length of
    /// the body. The version of the returned [`Response`] is always HTTP/1.1.
    ///
    /// # Errors
    /// Fails if the connection fails or [cannot be used again](Self::is_reusable), or the response
    /// is not valid. [`SendError::unsent`] contains the request if none of it was written, for
    /// example because the server had closed the idle connection.
    pub fn send(mut self, request: Request) -> SendFuture<S> {
        let response = ResponseReader::new(request.is_head());
        self.0.request = Some(request);
        SendFuture {
            connection: Some(self),
            response,
        }
    }

    /// Waits for the next data of the response body. Returns `None` at its end.
    ///
    /// # Errors
    /// Fails if the connection fails, or the body is invalid or incomplete. The connection cannot
    /// be used again then.
    pub async fn next_data(&mut self) -> Option<Result<Bytes, ConnectionError>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Like [`next_data`](Self::next_data), for a caller that implements a body or a future itself.
    pub fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        self.0.poll_data(cx)
    }

    /// Takes the rest of the response body if its length is known and all of it was received
    /// already. Returns `None` for any other body, which remains to be read.
    pub fn take_complete_body(&mut self) -> Option<Bytes> {
        let State {
            body, read_buffer, ..
        } = &mut *self.0;
        match *body {
            BodyReader::Complete => Some(Bytes::new()),
            BodyReader::Length(length) if length <= read_buffer.len() as u64 => {
                body.read(read_buffer).ok().flatten()
            }
            _ => None,
        }
    }

    /// Returns the number of bytes of the response body that were not returned yet, if it is known.
    pub fn remaining_body(&self) -> Option<u64> {
        self.0.body.remaining()
    }

    /// Returns whether another request can be sent: the last response was read to its end, the
    /// server keeps the connection open, and no further bytes were received.
    ///
    /// This checks the state only and does not read. The server may have closed the connection
    /// since.
    pub fn is_reusable(&self) -> bool {
        self.0.request.is_none() && self.0.is_at_end_of_response()
    }

    /// Frees the buffer of large reads. Call this when the connection becomes idle.
    pub fn shrink(&mut self) {
        if self.0.read_size > INITIAL_READ {
            (self.0.read_buffer, self.0.read_size) = (BytesMut::new(), INITIAL_READ);
        }
    }

    /// Returns the stream. Bytes that were received already are lost.
    pub fn into_stream(self) -> S {
        self.0.stream
    }
}

impl<S> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("keep_alive", &self.0.keep_alive)
            .finish_non_exhaustive()
    }
}

/// A request in progress, from [`Connection::send`]. It completes with the head of the response and
/// the connection, which then has the body. Dropping it closes the connection.
pub struct SendFuture<S> {
    /// `None` after completion.
    connection: Option<Connection<S>>,
    response: ResponseReader,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for SendFuture<S> {
    type Output = Result<(Response<()>, Connection<S>), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            connection,
            response,
        } = self.get_mut();
        let Some(mut connected) = connection.take() else {
            return Poll::Pending;
        };
        match connected.0.poll_head(response, cx) {
            Poll::Pending => {
                *connection = Some(connected);
                Poll::Pending
            }
            Poll::Ready(Ok(ResponseHead {
                status, headers, ..
            })) => {
                let mut response = Response::new(());
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                Poll::Ready(Ok((response, connected)))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl<S> fmt::Debug for SendFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> State<S> {
    /// Writes the request and reads the head of its response, at the same time: a server can
    /// respond before it has read the whole request.
    fn poll_head(
        &mut self,
        response: &mut ResponseReader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, SendError>> {
        if let Err(error) = self.check_before_sending(cx) {
            return Poll::Ready(Err(SendError {
                error,
                unsent: self.request.take(),
            }));
        }
        if let Poll::Ready(Err(error)) = self.poll_request(cx)
            && let Some(unsent) = self.request.take()
        {
            return Poll::Ready(Err(SendError {
                error: error.into(),
                unsent: Some(unsent),
            }));
        }
        let head = ready!(self.poll_response(response, cx));
        if let Ok(head) = &head {
            self.body = head.body_length.into();
            self.keep_alive &= head.keep_alive;
        }
        Poll::Ready(head.map_err(|error| SendError {
            error,
            unsent: None,
        }))
    }

    /// Reads the head of the response.
    fn poll_response(
        &mut self,
        response: &mut ResponseReader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, ConnectionError>> {
        loop {
            if let Some(head) = response.read(&mut self.read_buffer)? {
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_read(cx))? == 0 {
                return Poll::Ready(Err(ConnectionError::Closed));
            }
        }
    }

    /// Reads the next data of the body, and continues to write the request.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        // A server can respond before it has read the whole request. An error here does not affect
        // the response.
        let _ = self.poll_request(cx);
        loop {
            if let Some(data) = self.body.read(&mut self.read_buffer).transpose() {
                return Poll::Ready(Some(data.map_err(Into::into)));
            }
            if self.body.is_complete() {
                return Poll::Ready(None);
            }
            let Poll::Ready(read) = self.poll_read(cx) else {
                self.free_empty_buffer();
                return Poll::Pending;
            };
            if read? == 0 {
                self.keep_alive = false;
                self.body.close()?;
            }
        }
    }

    /// Detects a closed connection, and bytes that belong to an earlier response or to none, before
    /// the first byte of a request is written, so that these bytes are not taken for its response.
    fn check_before_sending(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionError> {
        if self.request.as_ref().is_none_or(Request::is_started) {
            return Ok(());
        }
        if !self.is_at_end_of_response() {
            return Err(ConnectionError::NotReusable);
        }
        match self.poll_read(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(0)) => Err(ConnectionError::Closed),
            Poll::Ready(Ok(_)) => Err(ConnectionError::UnsolicitedResponse),
            Poll::Ready(Err(error)) => Err(error.into()),
        }
    }

    /// Returns whether the next bytes that the server sends on this open connection begin a
    /// response.
    fn is_at_end_of_response(&self) -> bool {
        self.keep_alive && self.body.is_complete() && self.read_buffer.is_empty()
    }

    /// Writes the rest of the request. After an error, `request` is `None` unless nothing of it was
    /// written.
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(request) = &mut self.request else {
            return Poll::Ready(Ok(()));
        };
        let written = ready!(request.poll_write(&mut self.stream, cx));
        self.keep_alive &= written.is_ok();
        if written.is_ok() || request.is_started() {
            self.request = None;
        }
        Poll::Ready(written)
    }

    /// Frees the buffer if it is empty: the rest of the body may take long, as with a stream of
    /// events.
    fn free_empty_buffer(&mut self) {
        if self.read_buffer.is_empty() {
            self.read_buffer = BytesMut::new();
        }
    }

    /// Reads into the buffer. Returns the number of bytes, 0 at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read_buffer.capacity() - self.read_buffer.len() < MIN_READ {
            self.read_buffer.reserve(self.read_size);
        }
        let free = self.read_buffer.capacity() - self.read_buffer.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.read_buffer)).poll(cx))?;
        if read == free {
            self.read_size = (self.read_size * 2).min(MAX_READ);
        }
        Poll::Ready(Ok(read))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http::{Method, uri::PathAndQuery};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::RequestBuilder;

    fn get() -> Request {
        RequestBuilder::new(&Method::GET, &PathAndQuery::from_static("/")).body(Bytes::new())
    }

    /// Sends a request to a server that responds with this text. Returns the body, and whether the
    /// connection can be reused.
    async fn exchange(response: &[u8]) -> Result<(Vec<u8>, bool), ConnectionError> {
        let (client, mut server) = duplex(4096);
        let sending = tokio::spawn(Connection::new(client).send(get()));
        server.read_buf(&mut Vec::new()).await.unwrap();
        server.write_all(response).await.unwrap();
        drop(server);
        let (_, mut connection) = sending.await.unwrap().map_err(|failed| failed.error)?;
        let mut body = Vec::new();
        while let Some(data) = connection.next_data().await {
            body.extend_from_slice(&data?);
        }
        Ok((body, connection.is_reusable()))
    }

    /// L1: a connection is reused only after a complete response that keeps it open, and without
    /// further bytes.
    #[tokio::test]
    async fn only_unambiguous_connections_are_reused() {
        for (response, is_reusable) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", true),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                true,
            ),
            // The body ends with the connection.
            ("HTTP/1.1 200 OK\r\n\r\nok", false),
            (
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
                false,
            ),
            // A byte follows the body.
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok!", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", false),
        ] {
            assert_eq!(
                exchange(response.as_bytes()).await.unwrap(),
                (b"ok".to_vec(), is_reusable),
                "{response}"
            );
        }
        let no_body = exchange(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(no_body.unwrap(), (Vec::new(), true));
    }

    /// L1: a response that ends early is an error, before and within its body.
    #[tokio::test]
    async fn incomplete_responses_are_errors() {
        for (name, response, expected) in [
            (
                "no response",
                "",
                "the connection was closed before the response",
            ),
            (
                "within the head",
                "HTTP/1.1 200 OK\r\n",
                "the connection was closed before the response",
            ),
            (
                "within the body",
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
                "before the end of the body",
            ),
            ("not HTTP", "SSH-2.0", "not valid HTTP/1.1"),
        ] {
            let error = exchange(response.as_bytes()).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    /// L1: a request of which nothing was written is returned, so that it can be sent over another
    /// connection.
    #[tokio::test]
    async fn an_unsent_request_is_returned() {
        let (client, server) = duplex(4096);
        drop(server);
        let failed = Connection::new(client)
            .send(get())
            .await
            .map(drop)
            .unwrap_err();
        assert!(failed.unsent.is_some(), "{failed:?}");
        assert!(
            matches!(failed.error, ConnectionError::Closed),
            "{failed:?}"
        );
        let (client, mut server) = duplex(4096);
        server
            .write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            .await
            .unwrap();
        let failed = Connection::new(client)
            .send(get())
            .await
            .map(drop)
            .unwrap_err();
        assert!(failed.unsent.is_some(), "{failed:?}");
        assert!(
            matches!(failed.error, ConnectionError::UnsolicitedResponse),
            "{failed:?}"
        );
    }

    /// L1: a connection that cannot be reused sends no other request: its remaining bytes would
    /// look like the response.
    #[tokio::test]
    async fn a_connection_that_cannot_be_reused_sends_nothing() {
        for response in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        ] {
            let (client, mut server) = duplex(4096);
            let sending = tokio::spawn(Connection::new(client).send(get()));
            server.read_buf(&mut Vec::new()).await.unwrap();
            server.write_all(response.as_bytes()).await.unwrap();
            let (_, connection) = sending.await.unwrap().unwrap();
            let failed = connection.send(get()).await.map(drop).unwrap_err();
            assert!(
                matches!(failed.error, ConnectionError::NotReusable),
                "{response}: {failed:?}"
            );
            assert!(failed.unsent.is_some());
        }
    }

    /// L1: a body that pauses, as a stream of events does, holds no buffer, and continues.
    #[tokio::test]
    async fn a_pausing_body_holds_no_buffer() {
        let (client, mut server) = duplex(4096);
        let sending = tokio::spawn(Connection::new(client).send(get()));
        server.read_buf(&mut Vec::new()).await.unwrap();
        server
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        let (_, mut connection) = sending.await.unwrap().unwrap();
        for text in ["one", "two"] {
            assert!(
                connection
                    .poll_data(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
            );
            assert_eq!(connection.0.read_buffer.capacity(), 0);
            server
                .write_all(format!("3\r\n{text}\r\n").as_bytes())
                .await
                .unwrap();
            assert_eq!(connection.next_data().await.unwrap().unwrap(), text);
        }
    }
}
