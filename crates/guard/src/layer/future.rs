//! [`GuardFuture`]: the response future of the guard.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use portcullis_verifier::{VerifiedToken, VerifyError};
use tower_service::Service;

use super::{admission::check_verified, body::GuardBody, request_context::RequestContext};
use crate::authenticate::Verification;

pin_project! {
    /// The response future of a [`Guard`](crate::Guard).
    ///
    /// If it is dropped before it completes, the request is reported as `client.gone`, or as
    /// `server.shutdown` after
    /// [`ProtectedResource::mark_shutting_down`](crate::ProtectedResource::mark_shutting_down).
    pub struct GuardFuture<S, B, RB>
    where
        S: Service<Request<B>>,
    {
        // Dropped before the context, so that a service counts a request that continues before the
        // context ends its own count.
        #[pin]
        state: State<S, B, RB, S::Future>,
        context: RequestContext,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, RB, F> {
        /// The guard itself responds.
        Respond { response: Option<Response<GuardBody<RB>>> },
        /// The token is being verified. The request is boxed because most tokens are cached and do
        /// not need this state.
        Verifying { verification: Verification, pending: Option<Box<PendingRequest<S, B>>> },
        /// The inner service responds.
        Inner { #[pin] future: F },
    }
}

/// A request that waits for the verification of its token, and the service that is ready for it.
struct PendingRequest<S, B> {
    service: S,
    request: Request<B>,
}

impl<S, B, RB> GuardFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    /// The guard itself responds.
    pub(super) fn respond(context: RequestContext, response: Response<GuardBody<RB>>) -> Self {
        Self {
            context,
            state: State::Respond {
                response: Some(response),
            },
        }
    }

    /// The inner service processes the admitted request.
    pub(super) fn inner(context: RequestContext, future: S::Future) -> Self {
        Self {
            context,
            state: State::Inner { future },
        }
    }

    /// The token is verified first. `service` is ready for the request.
    pub(super) fn verifying(
        context: RequestContext,
        verification: Verification,
        service: S,
        request: Request<B>,
    ) -> Self {
        let pending = Some(Box::new(PendingRequest { service, request }));
        Self {
            context,
            state: State::Verifying {
                verification,
                pending,
            },
        }
    }
}

impl<S, B, RB> Future for GuardFuture<S, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>>,
{
    type Output = Result<Response<GuardBody<RB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Respond { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    // Polled after completion, for which `Future` specifies no result.
                    None => return Poll::Pending,
                },
                StateProj::Inner { future } => match future.poll(cx) {
                    Poll::Ready(Ok(response)) => {
                        return Poll::Ready(Ok(this.context.pass(response)));
                    }
                    Poll::Ready(Err(error)) => {
                        this.context.fail();
                        return Poll::Ready(Err(error));
                    }
                    Poll::Pending => match ready!(this.context.poll_new_decision(cx)) {
                        Ok(()) => continue,
                        Err(rejected) => State::Respond {
                            response: Some(this.context.reject(rejected)),
                        },
                    },
                },
                StateProj::Verifying {
                    verification,
                    pending,
                } => {
                    let verified = ready!(verification.as_mut().poll(cx));
                    this.context.end_verification();
                    match pending.take() {
                        Some(pending) => resume(this.context, *pending, verified),
                        None => return Poll::Pending,
                    }
                }
            };
            this.state.set(next);
        }
    }
}

/// Admits or rejects a request whose token has been verified.
fn resume<S, B, RB>(
    context: &mut RequestContext,
    pending: PendingRequest<S, B>,
    verified: Result<VerifiedToken, VerifyError>,
) -> State<S, B, RB, S::Future>
where
    S: Service<Request<B>, Response = Response<RB>>,
{
    let PendingRequest {
        mut service,
        mut request,
    } = pending;
    match check_verified(context.resource(), context.head(&request), verified) {
        Ok(admission) => {
            context.admit(&mut request, admission);
            State::Inner {
                future: service.call(request),
            }
        }
        Err(rejected) => State::Respond {
            response: Some(context.reject(rejected)),
        },
    }
}
