//! Responses of the server itself: liveness, readiness, and rejections of requests that reach no
//! guard.

use std::{net::SocketAddr, time::Instant};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::Full;
use portcullis_guard::RequestId;
use portcullis_reason_codes::ReasonCodes;
use portcullis_telemetry::{Details, Line};

use crate::state::ServerState;
use portcullis_config::plan::{HEALTH, READY};

/// The body of a rejection.
pub const REFUSED: &str = "refused\n";
/// The codes for which the server itself rejects a request, each with what it means, in Markdown.
pub const REASON_CODES: &[(&str, &str)] = Refusal::REASON_CODES;
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// When a client may try again while other replicas are unreachable, in seconds.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Why a request is rejected before it reaches a guard.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(super) enum Refusal {
    /// The request has more header fields than `limits.max_headers`.
    #[code = "headers.too_many"]
    TooManyHeaders,
    /// The store that the replicas share cannot be reached, and `shared.strict` is set.
    #[code = "shared.unreachable"]
    ReplicasUnreachable,
    /// No resource has this path.
    #[code = "path.unknown"]
    UnknownPath,
    /// A browser asks for the script of a service worker, which would control pages of the broker.
    #[code = "service_worker.refused"]
    ServiceWorker,
    /// The broker already answers 512 requests, or receives the bodies of 1,024.
    #[code = "broker.busy"]
    BrokerBusy,
    /// The client address exceeded a limit of the broker.
    #[code = "broker.limited"]
    BrokerLimited,
    /// The body of a request to the broker is longer than 32 KiB.
    #[code = "broker.body_too_large"]
    BrokerBodyTooLarge,
    /// The body of a request to the broker did not arrive within 10 s.
    #[code = "broker.body_timeout"]
    BrokerBodyTimeout,
    /// The body of a request to the broker ended early.
    #[code = "broker.body_incomplete"]
    BrokerBodyIncomplete,
    /// The broker failed to answer.
    #[code = "broker.failed"]
    BrokerFailed,
}

/// What a response has besides the headers that all have.
pub(super) struct Answer {
    status: StatusCode,
    /// The reason code of a rejection.
    pub(super) code: Option<&'static str>,
    body: String,
    media_type: HeaderValue,
}

/// Responds to requests for liveness and readiness, and with 404 to all others. `Host` and `Origin`
/// are checked first.
pub(super) fn without_resource<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
) -> Response<Full<Bytes>> {
    let started = Instant::now();
    let answer = match state
        .origins()
        .check(request.version(), request.uri(), request.headers())
    {
        Err(rejection) => Answer::rejected(rejection.status(), rejection.code(), REFUSED),
        Ok(()) => answer(state, request.uri().path()),
    };
    finish(state, request, peer, answer, started)
}

/// Rejects a request with too many header fields.
pub(super) fn too_many_headers<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
) -> Response<Full<Bytes>> {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    finish(
        state,
        request,
        peer,
        Answer::rejected(status, Refusal::TooManyHeaders.code(), REFUSED),
        Instant::now(),
    )
}

/// Rejects a request because other replicas are unreachable and must not be.
pub(super) fn replicas_unreachable<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
) -> Response<Full<Bytes>> {
    let code = Refusal::ReplicasUnreachable.code();
    let answer = Answer::rejected(StatusCode::SERVICE_UNAVAILABLE, code, "try again later\n");
    let mut response = finish(state, request, peer, answer, Instant::now());
    response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    response
}

/// Rejects a request for the script of a service worker.
pub(super) fn service_worker<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
) -> Response<Full<Bytes>> {
    let code = Refusal::ServiceWorker.code();
    let answer = Answer::rejected(StatusCode::FORBIDDEN, code, REFUSED);
    finish(state, request, peer, answer, Instant::now())
}

impl Answer {
    pub(super) fn rejected(status: StatusCode, code: &'static str, body: &str) -> Self {
        Self {
            status,
            code: Some(code),
            body: body.to_owned(),
            media_type: TEXT,
        }
    }

    /// Returns the response without the identifier of its request.
    pub(super) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body.clone()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.media_type.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

fn answer(state: &ServerState, path: &str) -> Answer {
    match path {
        HEALTH => Answer {
            status: StatusCode::OK,
            code: None,
            body: "ok\n".to_owned(),
            media_type: TEXT,
        },
        READY => {
            let (status, report) = state.ready();
            Answer {
                status,
                code: None,
                body: format!("{report:#}\n"),
                media_type: JSON,
            }
        }
        _ => Answer::rejected(
            StatusCode::NOT_FOUND,
            Refusal::UnknownPath.code(),
            "not found\n",
        ),
    }
}

/// Builds a response and logs it.
fn finish<B>(
    state: &ServerState,
    request: &Request<B>,
    peer: SocketAddr,
    answer: Answer,
    started: Instant,
) -> Response<Full<Bytes>> {
    let request_id = RequestId::generate();
    state.access().write(&Line {
        request_id: request_id.as_str(),
        time: state.clock().now(),
        method: request.method(),
        path: request.uri().path(),
        status: answer.status,
        code: answer.code,
        principal: None,
        latency: started.elapsed(),
        details: Details {
            client_address: Some(state.forwarded_headers().client(peer, request.headers())),
            ..Details::default()
        },
    });
    let mut response = answer.response();
    response
        .headers_mut()
        .insert(RequestId::HEADER, request_id.to_header_value());
    response.map(Full::from)
}
