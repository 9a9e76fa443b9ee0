//! The response to a request that may continue without its client.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use portcullis_endpoint::StreamStopped;
use portcullis_gateway::{UpstreamBody, UpstreamFuture};
use portcullis_metadata::syntax::is_event_stream;

use super::Continuation;

/// The future of a response. If it is dropped before it completes, the request continues if that is
/// permitted.
pub(crate) struct LegacyFuture {
    /// `None` after completion.
    call: Option<UpstreamFuture>,
    continuation: Option<Continuation>,
}

/// The body of a response. If it is dropped before its end, it is read to its end if the request
/// may continue.
pub(crate) struct LegacyBody {
    /// `None` only while it is dropped.
    body: Option<UpstreamBody>,
    /// `None` after the end, and for requests that end with their client.
    continuation: Option<Continuation>,
    /// Set when the endpoint, and not the client, has ended the stream.
    stopped: Option<StreamStopped>,
}

impl LegacyFuture {
    pub(super) fn new(call: UpstreamFuture, continuation: Option<Continuation>) -> Self {
        Self {
            call: Some(call),
            continuation,
        }
    }
}

impl Future for LegacyFuture {
    type Output = Result<Response<LegacyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else {
            return Poll::Pending;
        };
        let Ok(mut response) = ready!(Pin::new(call).poll(cx));
        self.call = None;
        let continuation = self.continuation.take();
        let is_stream = continuation.is_some() && is_event_stream(response.headers());
        let stopped = is_stream.then(StreamStopped::default);
        if let Some(stopped) = &stopped {
            response.extensions_mut().insert(stopped.clone());
        }
        Poll::Ready(Ok(response.map(|body| LegacyBody {
            body: Some(body),
            continuation,
            stopped,
        })))
    }
}

impl Drop for LegacyFuture {
    fn drop(&mut self) {
        let (Some(call), Some(continuation)) = (self.call.take(), self.continuation.take()) else {
            return;
        };
        continuation.run(async {
            let Ok(response) = call.await;
            read_to_end(response.into_body()).await;
        });
    }
}

impl From<UpstreamBody> for LegacyBody {
    fn from(body: UpstreamBody) -> Self {
        Self {
            body: Some(body),
            continuation: None,
            stopped: None,
        }
    }
}

impl Body for LegacyBody {
    type Data = Bytes;
    type Error = <UpstreamBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if body.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            self.continuation = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for LegacyBody {
    fn drop(&mut self) {
        let (Some(body), Some(continuation)) = (self.body.take(), self.continuation.take()) else {
            return;
        };
        if !body.is_end_stream() && !self.stopped.as_ref().is_some_and(StreamStopped::is_set) {
            continuation.run(read_to_end(body));
        }
    }
}

/// Reads and discards the rest of a response, so that the upstream completes it.
async fn read_to_end(mut body: UpstreamBody) {
    while let Some(Ok(_)) = body.frame().await {}
}
