//! Routing of requests by path to the service stack of their resource, and the server's own responses.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use portcullis_guard::{Peer, RequestId};
use tower_service::Service;

use super::{
    connection::{Handler, request_body::RequestBody},
    health,
    sessions::replicas::Replicas,
    state::{ServerState, Stack, StackBody},
};
use crate::{
    plan::{HEALTH, READY},
    telemetry::{Details, Line},
};

/// Routes a worker's requests.
#[derive(Clone)]
pub(super) struct Router {
    state: Arc<ArcSwap<ServerState>>,
    worker: usize,
    max_headers: usize,
}

impl Router {
    pub(super) fn new(state: Arc<ArcSwap<ServerState>>, worker: usize, max_headers: usize) -> Self {
        Self { state, worker, max_headers }
    }
}

impl Handler for Router {
    type Body = Either<StackBody, Full<Bytes>>;
    type Future = RouterFuture;

    /// The path is compared byte for byte, without decoding. Only a match reaches a guard.
    fn handle(&self, mut request: Request<RequestBody<Incoming>>, peer: SocketAddr) -> RouterFuture {
        let state = self.state.load();
        // HTTP/1.1 heads were counted when they were parsed, HTTP/2 ones only in bytes.
        if request.headers().len() > self.max_headers {
            let answer = (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Some("headers.too_many"), REFUSED.into(), TEXT);
            return RouterFuture::Own { response: Some(finish(&state, &request, answer, Instant::now())) };
        }
        let Some(mut stack) = state.stack(request.uri().path(), self.worker) else {
            return RouterFuture::Own { response: Some(own_response(&state, &request)) };
        };
        if state.process().replicas.as_ref().is_some_and(Replicas::rejects_all) {
            let answer = (StatusCode::SERVICE_UNAVAILABLE, Some("shared.unreachable"), UNAVAILABLE.into(), TEXT);
            let mut response = finish(&state, &request, answer, Instant::now());
            response.headers_mut().insert(RETRY_AFTER, SOON);
            return RouterFuture::Own { response: Some(response) };
        }
        request.extensions_mut().insert(Peer(peer));
        RouterFuture::Stack { future: stack.call(request) }
    }
}

pin_project! {
    /// The future of the response. An `async` block would store the request in addition to the future made from it.
    #[project = Projected]
    pub(super) enum RouterFuture {
        Own { response: Option<Response<Full<Bytes>>> },
        Stack { #[pin] future: <Stack as Service<Request<RequestBody<Incoming>>>>::Future },
    }
}

impl Future for RouterFuture {
    type Output = Response<Either<StackBody, Full<Bytes>>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Own { response } => match response.take() {
                Some(response) => Poll::Ready(response.map(Either::Right)),
                // Polled after completion, for which `Future` specifies no result.
                None => Poll::Pending,
            },
            Projected::Stack { future } => match ready!(future.poll(cx)) {
                Ok(response) => Poll::Ready(response.map(Either::Left)),
                Err(infallible) => match infallible {},
            },
        }
    }
}

/// A response of the server itself: status, reason code, body and its media type.
type OwnResponse = (StatusCode, Option<&'static str>, String, HeaderValue);

/// Responds to requests for liveness and readiness, and with 404 to all others.
fn own_response<B>(state: &ServerState, request: &Request<B>) -> Response<Full<Bytes>> {
    let started = Instant::now();
    let rejection = state.origins().check(request.version(), request.uri(), request.headers()).err();
    let answer = match (rejection, request.uri().path()) {
        (Some(rejection), _) => (rejection.status(), Some(rejection.code()), REFUSED.into(), TEXT),
        (None, HEALTH) => (StatusCode::OK, None, "ok\n".into(), TEXT),
        (None, READY) => {
            let replicas = state.process().replicas.as_ref().map(Replicas::readiness);
            let (status, report) = health::ready(state.is_draining(), state.readiness(), replicas);
            (status, None, format!("{report:#}\n"), JSON)
        }
        (None, _) => (StatusCode::NOT_FOUND, Some("path.unknown"), "not found\n".into(), TEXT),
    };
    finish(state, request, answer, started)
}

/// Builds a response and logs it.
fn finish<B>(
    state: &ServerState,
    request: &Request<B>,
    answer: OwnResponse,
    started: Instant,
) -> Response<Full<Bytes>> {
    let (status, code, body, media_type) = answer;
    let request_id = RequestId::generate();
    state.access().write(&Line {
        request_id: request_id.as_str(),
        time: state.clock().now(),
        method: request.method(),
        path: request.uri().path(),
        status,
        code,
        principal: None,
        latency: started.elapsed(),
        details: Details::default(),
    });
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(RequestId::HEADER, request_id.to_header_value());
    response
}

const REFUSED: &str = "refused\n";
const UNAVAILABLE: &str = "try again later\n";
const SOON: HeaderValue = HeaderValue::from_static("1");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
