use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use portcullis_verifier::{VerifiedToken, VerifyError};
use tower_service::Service;

use crate::{
    GuardBody,
    authenticate::Verification,
    exchange::Exchange,
    judge::{Admission, judge_verified},
};

pin_project! {
    /// The answer of a [`Guard`](crate::Guard) to come.
    ///
    /// Dropped early, it reports the request as `client.gone`, or as `server.shutdown` where the resource was
    /// [cut off](crate::ProtectedResource::mark_shutting_down).
    pub struct GuardFuture<S, B, RB>
    where
        S: Service<Request<B>>,
    {
        exchange: Exchange,
        #[pin]
        state: State<S, B, RB, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, RB, F> {
        /// Nothing to wait for.
        Answer { response: Option<Response<GuardBody<RB>>> },
        /// The request is held back until its token is judged. Boxed, so that the usual way stays small.
        Verifying { verification: Verification, held: Option<Box<Held<S, B>>> },
        Inner { #[pin] future: F },
    }
}

struct Held<S, B> {
    service: S,
    request: Request<B>,
}

impl<S, B, RB> GuardFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    pub(crate) fn answer(exchange: Exchange, response: Response<GuardBody<RB>>) -> Self {
        Self { exchange, state: State::Answer { response: Some(response) } }
    }

    pub(crate) fn inner(exchange: Exchange, future: S::Future) -> Self {
        Self { exchange, state: State::Inner { future } }
    }

    pub(crate) fn verifying(exchange: Exchange, verification: Verification, service: S, request: Request<B>) -> Self {
        let held = Some(Box::new(Held { service, request }));
        Self { exchange, state: State::Verifying { verification, held } }
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
                StateProj::Answer { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    // Polled again after the end, which the contract of `Future` leaves open.
                    None => return Poll::Pending,
                },
                StateProj::Inner { future } => {
                    let answer = ready!(future.poll(cx));
                    return Poll::Ready(match answer {
                        Ok(response) => Ok(this.exchange.pass(response)),
                        Err(error) => {
                            this.exchange.fail();
                            Err(error)
                        }
                    });
                }
                StateProj::Verifying { verification, held } => {
                    let verified = ready!(verification.as_mut().poll(cx));
                    match held.take() {
                        Some(held) => resume(this.exchange, *held, verified),
                        None => return Poll::Pending,
                    }
                }
            };
            this.state.set(next);
        }
    }
}

fn resume<S, B, RB>(
    exchange: &mut Exchange,
    held: Held<S, B>,
    verified: Result<VerifiedToken, VerifyError>,
) -> State<S, B, RB, S::Future>
where
    S: Service<Request<B>, Response = Response<RB>>,
{
    let Held { mut service, mut request } = held;
    match judge_verified(exchange.resource(), exchange.head(&request), verified) {
        Admission::Admit { verified, report_only_denial, permit } => {
            exchange.admit(&mut request, Some(verified), report_only_denial, permit);
            State::Inner { future: service.call(request) }
        }
        Admission::Refuse(refusal, verified) => State::Answer { response: Some(exchange.refuse(&refusal, verified)) },
    }
}
