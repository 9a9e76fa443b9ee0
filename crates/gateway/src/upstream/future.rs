//! [`UpstreamFuture`]: the future of a forwarded request.

use std::{
    convert::Infallible,
    error::Error as _,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, Method, Response};
use portcullis_guard::Caller;
use portcullis_http1::{SendError, SendFuture};
use portcullis_mcp::MessageId;
use portcullis_metadata::ResourceUri;

use super::{deadlines::RequestNumber, state::UpstreamState};
use crate::{
    connection::Stream,
    request::InboundRequest,
    response::{UpstreamBody, UpstreamFailure},
};

/// The future of a request to an [`HttpUpstream`](crate::HttpUpstream). It completes with the head
/// of the response and never fails. Dropping it closes the connection to the upstream.
pub struct UpstreamFuture {
    state: Arc<UpstreamState>,
    attempt: Attempt,
    /// The number in the list of head deadlines; `None` while the request is not in it.
    deadline: Option<RequestNumber>,
    is_post: bool,
    message_id: Option<MessageId>,
    request_id: HeaderValue,
    caller: Option<Caller>,
}

/// How the request is being sent.
enum Attempt {
    /// Over an idle connection. This is the common case, and it is not boxed.
    Idle(SendFuture<Stream>),
    /// Over another idle connection or a new one.
    Other(Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, UpstreamFailure>> + Send>>),
    /// Completed.
    Done,
}

impl UpstreamFuture {
    /// Starts to forward a request. `message_id` is the id of the JSON-RPC message in it, for an
    /// error.
    pub(super) fn new(
        state: Arc<UpstreamState>,
        inbound: InboundRequest<'_>,
        caller: Option<Caller>,
        message_id: Option<MessageId>,
    ) -> Self {
        let now = state.clock.monotonic();
        if let Some(caller) = &caller {
            caller.record().upstream_starts(now);
        }
        let is_post = inbound.method == Method::POST;
        let request_id = inbound.request_id.clone();
        let request = state.rules.upstream_request(inbound, &state.target);
        let attempt = match state.pool.take(now) {
            Some(connection) => Attempt::Idle(connection.send(request)),
            None => Attempt::Other(Box::pin(Arc::clone(&state).send(request))),
        };
        Self {
            state,
            attempt,
            deadline: None,
            is_post,
            message_id,
            request_id,
            caller,
        }
    }

    /// Polls the current attempt. A request that an idle connection did not take is sent over
    /// another one.
    fn poll_attempt(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<UpstreamBody>, UpstreamFailure>> {
        if let Attempt::Idle(sending) = &mut self.attempt {
            match ready!(Pin::new(sending).poll(cx)) {
                Ok((head, connection)) => {
                    return Poll::Ready(self.state.client_response(head, connection));
                }
                Err(SendError {
                    unsent: Some(request),
                    ..
                }) => {
                    self.attempt = Attempt::Other(Box::pin(Arc::clone(&self.state).send(request)));
                }
                Err(SendError { error, .. }) => {
                    return Poll::Ready(Err(UpstreamFailure::NoResponse(error)));
                }
            }
        }
        match &mut self.attempt {
            Attempt::Other(sending) => sending.as_mut().poll(cx),
            Attempt::Idle(_) | Attempt::Done => Poll::Pending,
        }
    }

    /// Logs a failure and returns the response to it.
    fn failure_response(&self, failure: &UpstreamFailure) -> Response<UpstreamBody> {
        let cause = failure.source().map(tracing::field::display);
        let request_id = self.request_id.to_str().unwrap_or_default();
        tracing::warn!(
            request.id = request_id,
            resource = self.state.resource.as_ref().map(ResourceUri::as_str),
            upstream.address = %self.state.target.endpoint,
            deny.code = failure.code(),
            cause,
            "{failure}"
        );
        failure.response(self.is_post, self.message_id.as_ref())
    }
}

impl Future for UpstreamFuture {
    type Output = Result<Response<UpstreamBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if matches!(this.attempt, Attempt::Done) {
            return Poll::Pending;
        }
        let response = match this.poll_attempt(cx) {
            Poll::Ready(response) => response,
            Poll::Pending => {
                ready!(
                    this.state
                        .head_deadlines
                        .poll_overdue(&mut this.deadline, cx)
                );
                Err(UpstreamFailure::HeadTimeout)
            }
        };
        this.attempt = Attempt::Done;
        this.state.head_deadlines.remove(&mut this.deadline);
        if let Some(caller) = &this.caller {
            caller.record().upstream_ends(this.state.clock.monotonic());
        }
        Poll::Ready(Ok(
            response.unwrap_or_else(|failure| this.failure_response(&failure))
        ))
    }
}

impl Drop for UpstreamFuture {
    fn drop(&mut self) {
        self.state.head_deadlines.remove(&mut self.deadline);
    }
}

impl fmt::Debug for UpstreamFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamFuture")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}
