//! Calls that open an upstream session. They continue for up to 60 s after the client disconnects,
//! so that the session can be ended.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt as _, Either, Full};
use parking_lot::Mutex;
use portcullis_endpoint::BackendSessionGuard;
use portcullis_guard::{Caller, ContinuedRequest};
use portcullis_mcp::{ErrorCode, error_body};
use portcullis_session::CapacityPermit;
use tokio::{sync::oneshot, time::timeout};

use super::{upstream_end::UpstreamEndQueue, upstreams::SessionUpstream};
use crate::backend::body::BackendBody;

/// How long the upstream may take after the client has disconnected.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the calls of one resource that open upstream sessions.
pub(crate) struct InitializeCalls {
    /// Where a session ends that is not recorded.
    pub(crate) upstream: SessionUpstream,
    pub(crate) upstream_ends: UpstreamEndQueue,
}

/// The future of the response.
pub(crate) struct InitializeFuture {
    /// `None` after completion.
    response: Option<oneshot::Receiver<Response<BackendBody>>>,
    caller: Caller,
    /// Counts the call as a request in progress when the client has disconnected.
    counted: Counted,
}

/// The count of a call without its client. The task of the call drops it at its end.
type Counted = Arc<Mutex<Option<ContinuedRequest>>>;

impl InitializeCalls {
    /// Starts a call. The capacity for its session stays reserved until the call has ended, and so
    /// long the call counts as a request in progress of its caller.
    pub(crate) fn start<F>(
        self: &Arc<Self>,
        call: F,
        permit: CapacityPermit,
        caller: Caller,
    ) -> InitializeFuture
    where
        F: Future<Output = Result<Response<BackendBody>, Infallible>> + Send + 'static,
    {
        let (mut answer, awaited) = oneshot::channel();
        let initialize_calls = Arc::clone(self);
        let counted = Counted::default();
        let until_end = Arc::clone(&counted);
        tokio::spawn(async move {
            let mut call = pin!(call);
            let answered = tokio::select! {
                answered = &mut call => Some(answered),
                () = answer.closed() => {
                    tracing::debug!("a client disconnected before its session was opened");
                    timeout(ANSWER_TIMEOUT, call).await.ok()
                }
            };
            match answered {
                Some(Ok(mut response)) => {
                    initialize_calls.end_unless_recorded(&mut response);
                    drop(answer.send(response));
                }
                Some(Err(infallible)) => match infallible {},
                None => tracing::warn!(
                    "an upstream session may be left open: the upstream did not respond to the request that opens it"
                ),
            }
            drop((permit, until_end));
        });
        InitializeFuture {
            response: Some(awaited),
            caller,
            counted,
        }
    }

    /// Ends the upstream session that a response names unless the endpoint records it. The endpoint
    /// does not record it if the client has disconnected or the response is rejected.
    fn end_unless_recorded(self: &Arc<Self>, response: &mut Response<BackendBody>) {
        let opened = response
            .status()
            .is_success()
            .then(|| response.headers().get(&self.upstream.header))
            .flatten();
        let Some(backend) = opened.map(|backend| Box::<[u8]>::from(backend.as_bytes())) else {
            return;
        };
        let initialize_calls = Arc::clone(self);
        response
            .extensions_mut()
            .insert(BackendSessionGuard::new(move || {
                tracing::info!("an upstream session ends because it was never recorded");
                initialize_calls
                    .upstream_ends
                    .add(initialize_calls.upstream.clone(), backend.clone());
            }));
    }
}

impl Future for InitializeFuture {
    type Output = Response<BackendBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(response) = &mut self.response else {
            return Poll::Pending;
        };
        let response = ready!(Pin::new(response).poll(cx)).unwrap_or_else(|_| lost());
        self.response = None;
        Poll::Ready(response)
    }
}

/// The call of a client that has disconnected still counts as a request in progress, until the call
/// ends.
impl Drop for InitializeFuture {
    fn drop(&mut self) {
        if self.response.is_none() {
            return;
        }
        *self.counted.lock() = self.caller.continue_request();
    }
}

/// Returns the response for a call whose task has panicked or was dropped with its runtime.
fn lost() -> Response<BackendBody> {
    let body = error_body(
        ErrorCode::InternalError,
        "The request was interrupted; try again",
        None,
        None,
    );
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(body)).boxed()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}
