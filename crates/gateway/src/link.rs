mod wakeups;

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Body, Frame, Incoming},
    client::conn::{
        TrySendError,
        http1::{Builder, Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;

use crate::stream::Stream;
use wakeups::Wakeups;

pub(crate) type Outbound = Request<Full<Bytes>>;

/// One HTTP/1.1 connection to the upstream, driven by whoever uses it: no task of its own stands between a request
/// and the socket. Dropping it closes the connection.
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// None when it has come to its end: dropped at once, it gives back a request that it did not take.
    connection: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    wakeups: Wakeups,
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
        // Head and body leave in one plain write: most bodies are so small that copying them costs less than a
        // vectored one.
        let (sender, connection) = Builder::new().writev(false).handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, connection: Some(connection), wakeups: Wakeups::new() })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) fn send(
        mut self: Box<Self>,
        request: Outbound,
    ) -> impl Future<Output = Result<(Response<Incoming>, Box<Self>), SendError>> + Send {
        Sending { answer: self.sender.try_send_request(request), link: Some(self) }
    }

    /// The next frame of the answer's body.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let connection = &mut self.connection;
        self.wakeups.poll(cx, |cx| {
            drive(connection, cx);
            Pin::new(&mut *incoming).poll_frame(cx)
        })
    }

    /// Whether the last answer is read to its end and another request may follow, as far as was noticed yet.
    pub(crate) fn is_idle(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Nobody waits for anything from it for now.
    pub(crate) fn rest(&self) {
        self.wakeups.forget_task();
    }
}

pin_project! {
    /// A request and the connection that it goes over. It holds the request once and not, as an `async` block would,
    /// at each of the places where it passes.
    struct Sending<F> {
        #[pin]
        answer: F,
        // Until the answer is there.
        link: Option<Box<Link>>,
    }
}

impl<F> Future for Sending<F>
where
    F: Future<Output = Result<Response<Incoming>, TrySendError<Outbound>>>,
{
    type Output = Result<(Response<Incoming>, Box<Link>), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // Polled again after the end, which the contract of `Future` leaves open.
        let Some(link) = this.link else { return Poll::Pending };
        let connection = &mut link.connection;
        let answered = ready!(link.wakeups.poll(cx, |cx| {
            drive(connection, cx);
            this.answer.as_mut().poll(cx)
        }));
        let Some(link) = this.link.take() else { return Poll::Pending };
        Poll::Ready(match answered {
            Ok(response) => Ok((response, link)),
            Err(mut error) => Err(match error.take_message() {
                Some(request) => SendError::NotSent(Box::new(request), error.into_error()),
                None => SendError::Broken(error.into_error()),
            }),
        })
    }
}

fn drive(connection: &mut Option<Connection<TokioIo<Stream>, Full<Bytes>>>, cx: &mut Context<'_>) {
    // What ended the connection is told to the request, or to the body that waits for more.
    if let Some(open) = connection
        && let Poll::Ready(_) = Pin::new(open).poll(cx)
    {
        *connection = None;
    }
}
