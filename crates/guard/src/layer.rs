pub(crate) mod admission;
mod body;
mod decision_report;
mod future;
mod request_context;
pub(crate) mod unanswered;

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use self::{
    admission::{NextStep, check_request},
    request_context::RequestContext,
};
pub use self::{body::GuardBody, future::GuardFuture};
use crate::{authenticate, resource::ProtectedResource};

/// Puts a service behind a [`ProtectedResource`]. [`builder`](Self::builder) builds it.
///
/// The [crate documentation](crate) has an example with a denied and an allowed request, and the
/// order of the checks. Clones, and all services that a layer creates, share the resource with its
/// limits and its verifier.
#[derive(Clone, Debug)]
pub struct GuardLayer {
    resource: Arc<ProtectedResource>,
}

impl GuardLayer {
    /// Creates a layer for services that implement this resource, or a part of it.
    pub fn new(resource: Arc<ProtectedResource>) -> Self {
        Self { resource }
    }

    /// Returns the protected resource.
    pub fn resource(&self) -> &Arc<ProtectedResource> {
        &self.resource
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard {
            resource: Arc::clone(&self.resource),
            inner,
        }
    }
}

/// A service behind the guard.
///
/// The inner service receives only admitted requests. Each has one [`Caller`](crate::Caller) in its
/// extensions, an `X-Request-Id` that the guard generated, and neither `Authorization` nor `DPoP`.
///
/// The guard itself never fails: rejections are responses. Its error is that of the inner service.
/// It is ready when the inner service is, and needs `Clone` of it because a request whose token is
/// verified first is sent later.
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
        let mut context = RequestContext::start(Arc::clone(&self.resource), &request);
        match check_request(&self.resource, context.head(&request)) {
            NextStep::Admit(admission) => {
                context.admit(&mut request, admission);
                GuardFuture::inner(context, self.inner.call(request))
            }
            NextStep::Reject(rejected) => {
                let response = context.reject(rejected);
                GuardFuture::respond(context, response)
            }
            NextStep::Respond(response) => {
                let response = context.respond(response, None);
                GuardFuture::respond(context, response)
            }
            NextStep::Verify(verifier, token) => {
                context.start_verification();
                let verification = authenticate::verify(verifier, token, context.request_id());
                // `poll_ready` prepared the current service, so the clone replaces it and the
                // current one is called.
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                GuardFuture::verifying(context, verification, ready, request)
            }
        }
    }
}
