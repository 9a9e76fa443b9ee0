use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    GuardBody, ProtectedResource, authenticate,
    exchange::Exchange,
    future::GuardFuture,
    judge::{Admission, Judgement, judge},
};

/// Puts a service behind a [`ProtectedResource`].
#[derive(Clone, Debug)]
pub struct GuardLayer {
    resource: Arc<ProtectedResource>,
}

impl GuardLayer {
    /// A layer for services that are this resource, or part of it.
    pub fn new(resource: Arc<ProtectedResource>) -> Self {
        Self { resource }
    }

    /// The protected resource.
    pub fn resource(&self) -> &Arc<ProtectedResource> {
        &self.resource
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { resource: Arc::clone(&self.resource), inner }
    }
}

/// A service behind the guard. The inner service sees only requests that were admitted: each has one
/// [`Caller`](crate::Caller) in its extensions, an `X-Request-Id` of ours, and neither `Authorization` nor `DPoP`.
#[derive(Clone, Debug)]
pub struct Guard<S> {
    resource: Arc<ProtectedResource>,
    inner: S,
}

impl<S, B, RB> Service<Request<B>> for Guard<S>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
{
    type Response = Response<GuardBody<RB>>;
    type Error = S::Error;
    type Future = GuardFuture<S, B, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let mut exchange = Exchange::start(Arc::clone(&self.resource), &request);
        match judge(&self.resource, exchange.head(&request)) {
            Judgement::AdmitAnyone => {
                exchange.admit(&mut request, None, None, None);
                GuardFuture::inner(exchange, self.inner.call(request))
            }
            Judgement::Judged(Admission::Admit { verified, report_only_denial, permit }) => {
                exchange.admit(&mut request, Some(verified), report_only_denial, permit);
                GuardFuture::inner(exchange, self.inner.call(request))
            }
            Judgement::Judged(Admission::Refuse(refusal, verified)) => {
                let response = exchange.refuse(&refusal, verified);
                GuardFuture::answer(exchange, response)
            }
            Judgement::Refuse(refusal) => {
                let response = exchange.refuse(&refusal, None);
                GuardFuture::answer(exchange, response)
            }
            Judgement::Answer(response) => {
                let response = exchange.answer(response, None);
                GuardFuture::answer(exchange, response)
            }
            Judgement::Verify(verifier, token) => {
                let verification = authenticate::verify(verifier, token, exchange.request_id());
                // The clone takes the place of the service that `poll_ready` made ready.
                let spare = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, spare);
                GuardFuture::verifying(exchange, verification, ready, request)
            }
        }
    }
}
