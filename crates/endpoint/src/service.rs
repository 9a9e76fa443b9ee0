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

use crate::{Admitted, EndpointBody, EndpointFuture, judge::judge_stream, layer::Shared, respond::Refusal};

/// A service behind the endpoint: it sees only requests that were [`Admitted`].
#[derive(Clone)]
pub struct Endpoint<S> {
    shared: Arc<Shared>,
    inner: S,
}

impl<S> Endpoint<S> {
    pub(crate) fn new(shared: Arc<Shared>, inner: S) -> Self {
        Self { shared, inner }
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
        let shared = Arc::clone(&self.shared);
        let (mut parts, body) = request.into_parts();
        let Some(caller) = parts.extensions.remove::<Caller>() else {
            return EndpointFuture::refused(shared, Refusal::NoCaller.into());
        };
        // First of all: what goes no further cannot be what a request is judged by.
        header::remove_connection_options(&mut parts.headers);
        match parts.method {
            Method::POST => {
                // The clone takes the place of the service that `poll_ready` made ready.
                let spare = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, spare);
                EndpointFuture::reading(shared, parts, body, caller, ready)
            }
            Method::GET | Method::DELETE => match judge_stream(&shared, &parts, &caller) {
                Ok(admission) => {
                    EndpointFuture::admitted(shared, admission, parts, Bytes::new(), caller, &mut self.inner)
                }
                Err(refusal) => EndpointFuture::refused(shared, refusal.into()),
            },
            _ => {
                let refusal = Refusal::Method { post_only: !shared.revisions.has_legacy() };
                EndpointFuture::refused(shared, refusal.into())
            }
        }
    }
}
