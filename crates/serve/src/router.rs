//! Routing of requests by path to the service stack of their resource.

pub(super) mod broker_response;
pub(super) mod local_response;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use portcullis_guard::{Peer, SupersededRequest};
use tower_service::Service;

use self::broker_response::BrokerCall;
use super::{
    connection::{Handler, request_body::RequestBody},
    replicas::Replicas,
    state::{ServerState, Stack, StackBody},
};

/// Routes a worker's requests.
#[derive(Clone)]
pub(super) struct Router {
    state: Arc<ArcSwap<ServerState>>,
    worker: usize,
    max_headers: usize,
}

impl Router {
    /// Returns the router of the worker with this number.
    pub(super) fn new(state: Arc<ArcSwap<ServerState>>, worker: usize, max_headers: usize) -> Self {
        Self {
            state,
            worker,
            max_headers,
        }
    }
}

impl Handler for Router {
    type Body = Either<StackBody, Full<Bytes>>;
    type Future = RouterFuture;

    /// Calls the stack of the resource, or responds itself. The path is compared byte for byte,
    /// without decoding. Only a match reaches a guard.
    fn handle(
        &self,
        mut request: Request<RequestBody<Incoming>>,
        peer: SocketAddr,
    ) -> RouterFuture {
        let state = self.state.load();
        // HTTP/1.1 heads were counted when they were parsed, HTTP/2 ones only in bytes.
        if request.headers().len() > self.max_headers {
            return RouterFuture::Local {
                response: Some(local_response::too_many_headers(&state, &request, peer)),
            };
        }
        let Some(mut stack) = state.stack(request.uri().path(), self.worker) else {
            return match BrokerCall::new(&state, &request, peer) {
                Some(call) if call.needs_records(&request) && rejects_all(&state) => {
                    replicas_unreachable(&state, &request, peer)
                }
                Some(call) => RouterFuture::Broker {
                    future: Box::pin(call.respond(request)),
                },
                None => RouterFuture::Local {
                    response: Some(local_response::without_resource(&state, &request, peer)),
                },
            };
        };
        if rejects_all(&state) {
            return replicas_unreachable(&state, &request, peer);
        }
        if state.broker().is_some() && asks_for_service_worker(request.headers()) {
            return RouterFuture::Local {
                response: Some(local_response::service_worker(&state, &request, peer)),
            };
        }
        state.forwarded_headers().examine(peer, &request);
        request.extensions_mut().insert(Peer(peer));
        RouterFuture::Stack {
            future: stack.call(request),
            router: self.clone(),
            peer,
        }
    }
}

/// Returns whether requests are rejected now because other replicas cannot be asked what ended.
fn rejects_all(state: &ServerState) -> bool {
    let replicas = state.process().replicas.as_ref();
    replicas.is_some_and(Replicas::rejects_all)
}

fn replicas_unreachable<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
) -> RouterFuture {
    RouterFuture::Local {
        response: Some(local_response::replicas_unreachable(state, request, peer)),
    }
}

/// Returns whether a browser asks for the script of a service worker. A resource has the origin of
/// the broker, whose pages such a script could control.
fn asks_for_service_worker(headers: &HeaderMap) -> bool {
    headers.contains_key("service-worker")
}

type BoxedResponse = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

pin_project! {
    /// The future of the response. An `async` block would store the request in addition to the
    /// future made from it.
    #[project = Projected]
    pub(super) enum RouterFuture {
        Local { response: Option<Response<Full<Bytes>>> },
        Broker { future: BoxedResponse },
        Stack {
            #[pin]
            future: <Stack as Service<Request<RequestBody<Incoming>>>>::Future,
            router: Router,
            peer: SocketAddr,
        },
    }
}

impl Future for RouterFuture {
    type Output = Response<Either<StackBody, Full<Bytes>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project() {
                Projected::Local { response } => match response.take() {
                    Some(response) => return Poll::Ready(response.map(Either::Right)),
                    // Polled after completion, for which `Future` specifies no result.
                    None => return Poll::Pending,
                },
                Projected::Broker { future } => {
                    return future
                        .as_mut()
                        .poll(cx)
                        .map(|response| response.map(Either::Right));
                }
                Projected::Stack {
                    future,
                    router,
                    peer,
                } => match ready!(future.poll(cx)) {
                    Ok(mut response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
                        match response.extensions_mut().remove() {
                            // The configuration was replaced while the body arrived. The body is
                            // complete, so this happens once.
                            Some(SupersededRequest(request)) => {
                                router.handle(request.map(RequestBody::complete), *peer)
                            }
                            None => return Poll::Ready(response.map(Either::Left)),
                        }
                    }
                    Ok(response) => return Poll::Ready(response.map(Either::Left)),
                    Err(infallible) => match infallible {},
                },
            };
            self.set(next);
        }
    }
}
