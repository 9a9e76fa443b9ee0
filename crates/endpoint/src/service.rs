//! [`Endpoint`]: the tower service.

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
    admission::{admit_without_body, unconfirmed_end},
    admitted::Admitted,
    future::{AdmittedRequest, EndpointFuture},
    response::{EndpointBody, Reason},
    state::EndpointState,
};

/// Checks requests and passes those that it admits to the inner service as [`Admitted`].
///
/// The body of a POST is collected and checked first. GET and DELETE are served only with sessions,
/// and must name one of the caller. Other methods get 405, and a request that no guard has
/// authenticated gets 500. The inner service is not called for a rejected request.
///
/// It is ready when the inner service is, also for requests that it then rejects. Capacity that the
/// inner service reserves in `poll_ready` is released when a POST is rejected, and stays reserved
/// for the next request when a GET or DELETE is.
#[derive(Clone)]
pub struct Endpoint<S> {
    endpoint: Arc<EndpointState>,
    inner: S,
}

impl<S> Endpoint<S> {
    /// Returns the service around an inner one.
    pub(crate) fn new(endpoint: Arc<EndpointState>, inner: S) -> Self {
        Self { endpoint, inner }
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
        let endpoint = Arc::clone(&self.endpoint);
        let (mut parts, body) = request.into_parts();
        let Some(caller) = parts.extensions.remove::<Caller>() else {
            return EndpointFuture::rejected(endpoint, Reason::NoGuard.into());
        };
        // Before all checks, so that none depends on a header that is not forwarded.
        header::remove_connection_options(&mut parts.headers);
        match parts.method {
            Method::POST => {
                // The future calls the service later, so it needs the one that `poll_ready` made
                // ready; see
                // <https://docs.rs/tower-service/0.3/tower_service/trait.Service.html#be-careful-when-cloning-inner-services>.
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                EndpointFuture::collecting(endpoint, parts, body, caller, ready)
            }
            Method::GET | Method::DELETE => match admit_without_body(&endpoint, &parts, &caller) {
                // Called at once, so no clone is needed.
                Ok(admission) => {
                    let request = AdmittedRequest {
                        admission,
                        parts,
                        body: Bytes::new(),
                        caller,
                    };
                    EndpointFuture::admitted(endpoint, request, &mut self.inner)
                }
                Err(reason) => match unconfirmed_end(&endpoint, &parts, &caller, &reason) {
                    Some(end) => {
                        EndpointFuture::rejected_when_recorded(endpoint, &reason.into(), end)
                    }
                    None => EndpointFuture::rejected(endpoint, reason.into()),
                },
            },
            _ => {
                let reason = Reason::Method {
                    has_sessions: endpoint.has_sessions(),
                };
                EndpointFuture::rejected(endpoint, reason.into())
            }
        }
    }
}
