use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;

use crate::stream::Stream;

pub(crate) type Outbound = Request<Full<Bytes>>;

/// One HTTP/1.1 connection to the upstream, driven by whoever uses it: no task of its own stands between a request
/// and the socket. Dropping it closes the connection.
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<Stream>, Full<Bytes>>,
    /// The connection has come to its end, and is not to be polled again.
    ended: bool,
}

/// Why a request got no answer.
pub(crate) enum SendError {
    /// Not a byte of it was written: here it is again.
    NotSent(Box<Outbound>, hyper::Error),
    /// It may have been acted on.
    Broken(hyper::Error),
}

impl Link {
    pub(crate) async fn new(stream: Stream) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, connection, ended: false })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&mut self, request: Outbound) -> Result<Response<Incoming>, SendError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (connection, ended) = (&mut self.connection, &mut self.ended);
        let sent = poll_fn(|cx| {
            drive(connection, ended, cx);
            answer.as_mut().poll(cx)
        });
        sent.await.map_err(|mut error| match error.take_message() {
            Some(request) => SendError::NotSent(Box::new(request), error.into_error()),
            None => SendError::Broken(error.into_error()),
        })
    }

    /// Reads and writes what can be read and written now.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.connection, &mut self.ended, cx);
    }

    /// Whether the last answer is read to its end and another request may follow.
    pub(crate) fn is_idle(&self) -> bool {
        !self.ended && self.sender.is_ready()
    }
}

fn drive(connection: &mut Connection<TokioIo<Stream>, Full<Bytes>>, ended: &mut bool, cx: &mut Context<'_>) {
    // What ended the connection is told to the request, or to the body that waits for more.
    if !*ended && let Poll::Ready(_) = Pin::new(connection).poll(cx) {
        *ended = true;
    }
}
