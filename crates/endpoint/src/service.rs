//! The tower service.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use portcullis_guard::Caller;
use portcullis_mcp::header;
use tower_service::Service;

use crate::{
    admission::admit_without_body,
    admitted::Admitted,
    future::EndpointFuture,
    response::{EndpointBody, Reason},
    state::EndpointState,
};

/// Checks requests and passes those that it admits to the inner service as [`Admitted`].
#[derive(Clone)]
pub struct Endpoint<S> {
    state: Arc<EndpointState>,
    inner: S,
}

impl<S> Endpoint<S> {
    /// Returns the service around an inner one.
    pub(crate) fn new(state: Arc<EndpointState>, inner: S) -> Self {
        Self { state, inner }
    }
}

impl<S, B, RB> Service<Request<B>> for Endpoint<S>
where
    S: Service<Admitted, Response = Response<RB>> + Clone,
    B: Body<Data = Bytes>,
    RB: Body<Data = Bytes>,
{
    type Response = Response<EndpointBody<RB>>;
    type Error = S::Error;
    type Future = EndpointFuture<S, B, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let state = Arc::clone(&self.state);
        let (mut parts, body) = request.into_parts();
        let Some(caller) = parts.extensions.remove::<Caller>() else {
            return EndpointFuture::rejected(state, Reason::NoGuard.into());
        };
        // First, so that no check depends on a header that is not forwarded.
        header::remove_connection_options(&mut parts.headers);
        match parts.method {
            Method::POST => {
                // The clone replaces the service that `poll_ready` made ready.
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                EndpointFuture::collecting(state, parts, body, caller, ready)
            }
            Method::GET | Method::DELETE => match admit_without_body(&state, &parts, &caller) {
                Ok(admission) => {
                    EndpointFuture::admitted(state, admission, parts, Bytes::new(), caller, &mut self.inner)
                }
                Err(reason) => EndpointFuture::rejected(state, reason.into()),
            },
            _ => {
                let reason = Reason::Method { post_only: !state.has_sessions() };
                EndpointFuture::rejected(state, reason.into())
            }
        }
    }
}
