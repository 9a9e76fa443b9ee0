//! [`EndpointFuture`]: the response future of the endpoint.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING},
    request::Parts,
};
use http_body::Body;
use pin_project_lite::pin_project;
use portcullis_guard::{Caller, SupersededRequest};
use portcullis_session::EndRecord;
use portcullis_verifier::Principal;
use tower_service::Service;

use crate::{
    admission::{
        Admission, Finished, Negotiated, Negotiation, SessionUse, admit_post, record_session,
    },
    admitted::Admitted,
    message::{BodyError, BudgetShare, Collector},
    response::{EndpointBody, Reason, Rejection},
    state::EndpointState,
};

pin_project! {
    /// The response future of an [`Endpoint`](crate::Endpoint).
    ///
    /// Only the response to `initialize` is boxed. Dropping the future returns its share of the
    /// budget and the reservation of a session that is not recorded yet.
    pub struct EndpointFuture<S, B, RB>
    where
        S: Service<Admitted>,
    {
        endpoint: Arc<EndpointState>,
        #[pin]
        state: State<S, B, RB, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, RB, F> {
        /// The body of a POST is being collected.
        Collecting { #[pin] body: B, pending: Option<PendingPost<S>> },
        /// The body took long to arrive. The guard decides again about the request.
        Deciding { complete: Option<CompletePost<S>> },
        /// The inner service has been called.
        Inner { #[pin] future: F, session_use: Option<SessionUse>, caller: Caller },
        /// The inner service has accepted an `initialize`. The negotiated revision is not known
        /// yet.
        Negotiating { negotiation: Negotiation<RB>, caller: Caller },
        /// The session has ended. The end is being recorded.
        Recording { end: EndRecord, response: Option<Response<EndpointBody<RB>>> },
        /// The response is complete; `None` when it has been returned.
        Ready { response: Option<Response<EndpointBody<RB>>> },
    }
}

/// An admitted request, before the inner service is called.
pub(crate) struct AdmittedRequest {
    pub(crate) admission: Admission,
    pub(crate) parts: Parts,
    /// The complete body.
    pub(crate) body: Bytes,
    pub(crate) caller: Caller,
}

/// A POST whose body is being collected.
struct PendingPost<S> {
    collector: Collector,
    parts: Parts,
    caller: Caller,
    service: S,
    /// Whether the body was not complete when it was first polled. The decision is then as old as
    /// the body is slow.
    has_waited: bool,
}

/// A POST whose body is complete.
struct CompletePost<S> {
    parts: Parts,
    body: Bytes,
    caller: Caller,
    service: S,
}

impl<S, B, RB> EndpointFuture<S, B, RB>
where
    S: Service<Admitted, Response = Response<RB>>,
    B: Body<Data = Bytes>,
{
    /// Returns a future that is ready with the response to a rejected request.
    pub(crate) fn rejected(endpoint: Arc<EndpointState>, rejection: Rejection) -> Self {
        let state = State::rejected(&endpoint, &rejection);
        Self { endpoint, state }
    }

    /// Returns a future that is ready with the response to a rejected request when the end of its
    /// session is recorded.
    pub(crate) fn rejected_when_recorded(
        endpoint: Arc<EndpointState>,
        rejection: &Rejection,
        end: EndRecord,
    ) -> Self {
        let state = State::Recording {
            end,
            response: Some(endpoint.reject(rejection)),
        };
        Self { endpoint, state }
    }

    /// Returns a future that collects the body of a POST, checks the message, and calls the inner
    /// service. A body whose announced size exceeds the limit is rejected unread.
    pub(crate) fn collecting(
        endpoint: Arc<EndpointState>,
        parts: Parts,
        body: B,
        caller: Caller,
        service: S,
    ) -> Self {
        if body.size_hint().lower() > endpoint.max_body as u64 {
            return Self::rejected(endpoint, Reason::Body(BodyError::TooLarge).into());
        }
        let principal = caller.principal().map_or(0, Principal::limit_key);
        let collector = Collector::new(endpoint.max_body, &endpoint.budget, principal);
        let pending = Some(PendingPost {
            collector,
            parts,
            caller,
            service,
            has_waited: false,
        });
        Self {
            endpoint,
            state: State::Collecting { body, pending },
        }
    }

    /// Returns a future of the inner service's response to an admitted request.
    pub(crate) fn admitted(
        endpoint: Arc<EndpointState>,
        request: AdmittedRequest,
        service: &mut S,
    ) -> Self {
        let state = State::inner(&endpoint, request, service);
        Self { endpoint, state }
    }
}

impl<S, B, RB> State<S, B, RB, S::Future>
where
    S: Service<Admitted, Response = Response<RB>>,
{
    fn rejected(endpoint: &EndpointState, rejection: &Rejection) -> Self {
        Self::Ready {
            response: Some(endpoint.reject(rejection)),
        }
    }

    /// Calls the inner service.
    fn inner(endpoint: &EndpointState, request: AdmittedRequest, service: &mut S) -> Self {
        let AdmittedRequest {
            admission,
            mut parts,
            body,
            caller,
        } = request;
        let Admission {
            era,
            mut session_use,
            checked_headers,
            message_id,
        } = admission;
        checked_headers.remove_unchecked(&mut parts.headers);
        session_use.extend_streams(&caller);
        session_use.prepare_headers(&endpoint.sessions, &mut parts.headers);
        if let SessionUse::Open(opening) = &session_use {
            if let Some(reservation) = &opening.reservation {
                parts.extensions.insert(reservation.capacity_permit());
            }
            // The endpoint reads the negotiated revision from the response.
            parts.headers.remove(ACCEPT_ENCODING);
        }
        for framing in [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER] {
            parts.headers.remove(framing);
        }
        let future = service.call(Admitted::new(parts, body, caller.clone(), era, message_id));
        Self::Inner {
            future,
            session_use: Some(session_use),
            caller,
        }
    }

    /// Checks a POST whose body is complete. If the decision about it is too old, the guard decides
    /// again first.
    fn collected(endpoint: &EndpointState, pending: PendingPost<S>) -> Self {
        let PendingPost {
            collector,
            parts,
            caller,
            service,
            has_waited,
        } = pending;
        let is_outdated = has_waited && caller.needs_new_decision();
        let complete = CompletePost {
            parts,
            body: collector.finish(),
            caller,
            service,
        };
        if is_outdated {
            Self::Deciding {
                complete: Some(complete),
            }
        } else {
            Self::decided(endpoint, complete)
        }
    }

    /// Checks a complete POST about which the guard has decided.
    fn decided(endpoint: &EndpointState, complete: CompletePost<S>) -> Self {
        let CompletePost {
            parts,
            body,
            caller,
            mut service,
        } = complete;
        match admit_post(endpoint, &parts, &caller, &body) {
            Ok(admission) => Self::inner(
                endpoint,
                AdmittedRequest {
                    admission,
                    parts,
                    body,
                    caller,
                },
                &mut service,
            ),
            Err(rejection) => Self::rejected(endpoint, &rejection),
        }
    }

    /// Returns a POST whose settings were replaced, so that the server passes it to the new ones.
    fn superseded(complete: CompletePost<S>) -> Self {
        let CompletePost { parts, body, .. } = complete;
        let mut response = Response::new(EndpointBody::own(Bytes::new()));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
            .extensions_mut()
            .insert(SupersededRequest(Request::from_parts(parts, body)));
        Self::Ready {
            response: Some(response),
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
        let endpoint: &EndpointState = this.endpoint;
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Collecting { body, pending } => {
                    match ready!(poll_collected(body, pending, cx)) {
                        Ok(post) => State::collected(endpoint, post),
                        Err(error) => State::rejected(endpoint, &Reason::Body(error).into()),
                    }
                }
                StateProj::Deciding { complete } => {
                    let Some(post) = complete.as_ref() else {
                        return Poll::Pending;
                    };
                    if !post.caller.is_superseded() {
                        ready!(post.caller.poll_new_decision());
                    }
                    match complete.take() {
                        Some(post) if post.caller.is_superseded() => State::superseded(post),
                        Some(post) => State::decided(endpoint, post),
                        None => return Poll::Pending,
                    }
                }
                StateProj::Inner {
                    future,
                    session_use,
                    caller,
                } => {
                    let response = ready!(future.poll(cx))?;
                    match session_use.take() {
                        Some(SessionUse::Open(opening)) if response.status().is_success() => {
                            let share = BudgetShare::empty(&endpoint.budget);
                            match Negotiation::begin(opening, response, endpoint.revisions, share) {
                                Ok(negotiation) => State::Negotiating {
                                    negotiation,
                                    caller: caller.clone(),
                                },
                                Err(accepted) => {
                                    return Poll::Ready(Ok(record_session(
                                        *accepted, endpoint, caller,
                                    )));
                                }
                            }
                        }
                        Some(session_use) => match session_use.finish(endpoint, caller, response) {
                            Finished {
                                response,
                                end: None,
                            } => return Poll::Ready(Ok(response)),
                            Finished {
                                response,
                                end: Some(end),
                            } => State::Recording {
                                end,
                                response: Some(response),
                            },
                        },
                        // The future was polled after completion.
                        None => return Poll::Pending,
                    }
                }
                StateProj::Negotiating {
                    negotiation,
                    caller,
                } => {
                    let response = match ready!(Pin::new(negotiation).poll(cx)) {
                        Negotiated::Accepted(accepted) => {
                            record_session(*accepted, endpoint, caller)
                        }
                        Negotiated::Rejected(rejection) => endpoint.reject(&rejection),
                    };
                    return Poll::Ready(Ok(response));
                }
                StateProj::Recording { end, response } => match ready!(Pin::new(end).poll(cx)) {
                    Ok(()) => State::Ready {
                        response: response.take(),
                    },
                    Err(error) => State::rejected(endpoint, &Reason::EndNotRecorded(error).into()),
                },
                StateProj::Ready { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    // The future was polled after completion.
                    None => return Poll::Pending,
                },
            };
            this.state.set(next);
        }
    }
}

/// Collects the body of a POST. Completes with the POST and takes it.
fn poll_collected<S, B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    pending: &mut Option<PendingPost<S>>,
    cx: &mut Context<'_>,
) -> Poll<Result<PendingPost<S>, BodyError>> {
    let Some(post) = pending else {
        return Poll::Pending;
    };
    // Most bodies are known to be complete with their last frame.
    let mut is_complete = false;
    while !is_complete {
        let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else {
            post.has_waited = true;
            return Poll::Pending;
        };
        match frame {
            Some(frame) => {
                post.collector.add(frame)?;
                is_complete = body.is_end_stream();
            }
            None => is_complete = true,
        }
    }
    pending
        .take()
        .map_or(Poll::Pending, |post| Poll::Ready(Ok(post)))
}
