//! The answer of the endpoint to come.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    Response,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING},
    request::Parts,
};
use http_body::Body;
use pin_project_lite::pin_project;
use portcullis_guard::Caller;
use tower_service::Service;

use crate::{
    Admitted, EndpointBody,
    budget::Share,
    collect::Collector,
    exchange::{Exchange, record},
    judge::{Admission, judge_post},
    layer::Shared,
    negotiated::{Negotiated, Negotiation},
    respond::{Refusal, Refused},
};

pin_project! {
    /// The answer of an [`Endpoint`](crate::Endpoint) to come. Nothing in it is boxed but the answer to `initialize`.
    ///
    /// Dropped early, it gives back what it holds: its share of the budget, and the room for a session that is not
    /// open yet.
    pub struct EndpointFuture<S, B, RB>
    where
        S: Service<Admitted>,
    {
        shared: Arc<Shared>,
        #[pin]
        state: State<S, B, RB, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, RB, F> {
        /// Nothing to wait for.
        Answer { response: Option<Response<EndpointBody<RB>>> },
        /// The body of a POST is on its way in.
        Reading { #[pin] body: B, held: Option<Held<S>> },
        Inner { #[pin] future: F, exchange: Option<Exchange>, caller: Caller },
        /// The inner service has accepted an `initialize`, and has not said yet which revision the session follows.
        Negotiating { negotiation: Option<Box<Negotiation<RB>>>, caller: Caller },
    }
}

/// What waits for the body.
struct Held<S> {
    collector: Collector,
    parts: Parts,
    caller: Caller,
    service: S,
}

impl<S, B, RB> EndpointFuture<S, B, RB>
where
    S: Service<Admitted, Response = Response<RB>>,
    B: Body<Data = Bytes>,
{
    pub(crate) fn refused(shared: Arc<Shared>, refused: Refused) -> Self {
        let state = State::refused(&shared, &refused);
        Self { shared, state }
    }

    pub(crate) fn reading(shared: Arc<Shared>, parts: Parts, body: B, caller: Caller, service: S) -> Self {
        if body.size_hint().lower() > shared.max_body as u64 {
            return Self::refused(shared, Refusal::TooLarge.into());
        }
        let collector = Collector::new(shared.max_body, &shared.budget);
        let held = Some(Held { collector, parts, caller, service });
        Self { shared, state: State::Reading { body, held } }
    }

    pub(crate) fn admitted(
        shared: Arc<Shared>,
        admission: Admission,
        parts: Parts,
        body: Bytes,
        caller: Caller,
        service: &mut S,
    ) -> Self {
        let state = State::inner(&shared, admission, parts, body, caller, service);
        Self { shared, state }
    }
}

impl<S, B, RB> State<S, B, RB, S::Future>
where
    S: Service<Admitted, Response = Response<RB>>,
{
    fn refused(shared: &Shared, refused: &Refused) -> Self {
        Self::Answer { response: Some(shared.refuse(refused)) }
    }

    fn inner(
        shared: &Shared,
        admission: Admission,
        mut parts: Parts,
        body: Bytes,
        caller: Caller,
        service: &mut S,
    ) -> Self {
        let Admission { era, exchange, mirrored } = admission;
        mirrored.remove_unchecked(&mut parts.headers);
        exchange.note_token(&caller);
        exchange.prepare(&shared.sessions, &mut parts.headers);
        if let Exchange::Opening(opening) = &exchange {
            parts.extensions.insert(opening.room.capacity_permit());
            // The response has to be readable for the revision that it names.
            parts.headers.remove(ACCEPT_ENCODING);
        }
        for framing in [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER] {
            parts.headers.remove(framing);
        }
        let future = service.call(Admitted::new(parts, body, caller.clone(), era));
        Self::Inner { future, exchange: Some(exchange), caller }
    }

    /// The body is complete.
    fn judged(shared: &Shared, held: Held<S>) -> Self {
        let Held { collector, parts, caller, mut service } = held;
        let body = collector.finish();
        match judge_post(shared, &parts, &caller, &body) {
            Ok(admission) => Self::inner(shared, admission, parts, body, caller, &mut service),
            Err(refused) => Self::refused(shared, &refused),
        }
    }
}

impl<S, B, RB> Future for EndpointFuture<S, B, RB>
where
    S: Service<Admitted, Response = Response<RB>>,
    B: Body<Data = Bytes>,
    RB: Body<Data = Bytes>,
{
    type Output = Result<Response<EndpointBody<RB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Answer { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    // Polled again after the end, which the contract of `Future` leaves open.
                    None => return Poll::Pending,
                },
                StateProj::Inner { future, exchange, caller } => {
                    let response = ready!(future.poll(cx))?;
                    match exchange.take() {
                        Some(Exchange::Opening(opening)) if response.status().is_success() => {
                            match Negotiation::begin(
                                opening,
                                response,
                                this.shared.revisions,
                                Share::empty(&this.shared.budget),
                            ) {
                                Ok(negotiation) => {
                                    State::Negotiating { negotiation: Some(negotiation), caller: caller.clone() }
                                }
                                Err(accepted) => return Poll::Ready(Ok(record(*accepted, this.shared, caller))),
                            }
                        }
                        Some(exchange) => return Poll::Ready(Ok(exchange.finish(this.shared, caller, response))),
                        None => return Poll::Pending,
                    }
                }
                StateProj::Negotiating { negotiation, caller } => {
                    let Some(mut waiting) = negotiation.take() else { return Poll::Pending };
                    let Poll::Ready(frame) = waiting.body().poll_frame(cx) else {
                        *negotiation = Some(waiting);
                        return Poll::Pending;
                    };
                    let piece = match frame {
                        Some(Err(_)) => return Poll::Ready(Ok(this.shared.refuse(&waiting.broken()))),
                        // Trailers are dropped.
                        Some(Ok(frame)) => Some(frame.into_data().unwrap_or_default()),
                        None => None,
                    };
                    let last = piece.is_none() || waiting.body().is_end_stream();
                    match waiting.take(&piece.unwrap_or_default(), last, this.shared.revisions) {
                        Ok(Negotiated::Session(accepted)) => {
                            return Poll::Ready(Ok(record(*accepted, this.shared, caller)));
                        }
                        Ok(Negotiated::Refused(refused)) => return Poll::Ready(Ok(this.shared.refuse(&refused))),
                        Err(more) => {
                            *negotiation = Some(more);
                            continue;
                        }
                    }
                }
                StateProj::Reading { mut body, held } => {
                    let Some(waiting) = held else { return Poll::Pending };
                    let added = match ready!(body.as_mut().poll_frame(cx)) {
                        // Most bodies say with their last piece that it is the last.
                        Some(frame) => waiting.collector.add(frame).map(|()| body.is_end_stream()),
                        None => Ok(true),
                    };
                    match added {
                        Ok(false) => continue,
                        Ok(true) => match held.take() {
                            Some(complete) => State::judged(this.shared, complete),
                            None => return Poll::Pending,
                        },
                        Err(refusal) => State::refused(this.shared, &refusal.into()),
                    }
                }
            };
            this.state.set(next);
        }
    }
}
