//! From a request's path to the stack that answers it.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use portcullis_guard::{Peer, RequestId};
use tower_service::Service as _;

use super::{
    connection::Answer,
    health,
    request_body::RequestBody,
    site::{Site, SiteBody},
};
use crate::{
    plan::{HEALTH, READY},
    telemetry::Line,
};

/// A worker's view of the site.
#[derive(Clone)]
pub(super) struct Router {
    site: Arc<ArcSwap<Site>>,
    worker: usize,
}

impl Router {
    pub(super) fn new(site: Arc<ArcSwap<Site>>, worker: usize) -> Self {
        Self { site, worker }
    }
}

impl Answer for Router {
    type Body = Either<SiteBody, Full<Bytes>>;

    /// The path is compared as it came, byte for byte; only a match reaches a guard.
    async fn answer(&self, mut request: Request<RequestBody<Incoming>>, peer: SocketAddr) -> Response<Self::Body> {
        let site = self.site.load();
        let Some(mut stack) = site.stack(request.uri().path(), self.worker) else {
            return own_answer(&site, &request).map(Either::Right);
        };
        drop(site);
        request.extensions_mut().insert(Peer(peer));
        match stack.call(request).await {
            Ok(response) => response.map(Either::Left),
            Err(infallible) => match infallible {},
        }
    }
}

/// Health, readiness, and 404 for everything else.
fn own_answer<B>(site: &Site, request: &Request<B>) -> Response<Full<Bytes>> {
    let started = Instant::now();
    let request_id = RequestId::generate();
    let path = request.uri().path();
    let refused = site.origins().check(request.version(), request.uri(), request.headers()).err();
    let (status, code, body, kind) = match (refused, path) {
        (Some(refused), _) => (refused.status(), Some(refused.code()), "refused\n".into(), TEXT),
        (None, HEALTH) => (StatusCode::OK, None, "ok\n".into(), TEXT),
        (None, READY) => {
            let (status, report) = health::ready(site.readiness());
            (status, None, format!("{report:#}\n"), JSON)
        }
        (None, _) => (StatusCode::NOT_FOUND, Some("path.unknown"), "not found\n".into(), TEXT),
    };
    site.access().write(&Line {
        request_id: request_id.as_str(),
        time: site.clock().unix(),
        method: request.method(),
        path,
        status,
        code,
        principal: None,
        latency: started.elapsed(),
    });
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(RequestId::HEADER, request_id.to_header_value());
    response
}

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
