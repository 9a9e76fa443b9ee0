//! The tower service: rejections before the inner service, readiness, and clones.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use portcullis_guard::GuardLayer;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use super::fixture::*;
use crate::{Admitted, EndpointLayer};

/// D2, F1: without a guard in front, a request of any method gets 500 and does not reach the inner
/// service.
#[tokio::test]
async fn a_request_without_a_guard_is_rejected() {
    let fixture = Fixture::open();
    for method in ["POST", "GET", "DELETE", "PUT"] {
        let endpoint = EndpointLayer::new(fixture.settings.clone())
            .unwrap()
            .layer(fixture.inner.clone());
        let message = Full::new(Bytes::from(initialize().to_string()));
        let request = fixture.request(method, &[("content-type", "application/json")], message);
        let response = endpoint.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 500, "{method}");
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            "Internal error",
            "{method}"
        );
    }
    assert!(fixture.inner.seen().is_empty());
}

/// F1: the headers that `Connection` names are removed before the checks: a request that names its
/// session header is rejected as one without a session.
#[tokio::test]
async fn connection_options_are_removed_before_the_checks() {
    let fixture = Fixture::guarded("");
    let session = fixture.initialize().await;
    for (connection, status) in [("close", 200), (SESSION, 400)] {
        let headers = [
            (SESSION, &*session),
            (VERSION, "2025-11-25"),
            ("connection", connection),
        ];
        assert_eq!(
            fixture.send("GET", &headers, "").await.status,
            status,
            "{connection}"
        );
    }
}

/// A service whose clones are not ready. It counts its calls without `poll_ready`.
#[derive(Default)]
struct Inner {
    is_ready: bool,
    calls: Arc<[AtomicUsize; 2]>,
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        Self {
            is_ready: false,
            calls: Arc::clone(&self.calls),
        }
    }
}

impl Service<Admitted> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Admitted) -> Self::Future {
        self.calls[usize::from(std::mem::take(&mut self.is_ready))].fetch_add(1, Relaxed);
        ready(Ok(Response::new(Full::from("{}"))))
    }
}

/// The inner service that `poll_ready` made ready is called, for every method and also after a
/// rejected request.
#[tokio::test]
async fn the_ready_service_is_called() {
    let fixture = Fixture::guarded("");
    let session = fixture.initialize().await;
    let inner = Inner::default();
    let layer = EndpointLayer::new(fixture.settings.clone()).unwrap();
    let mut service =
        GuardLayer::new(Arc::clone(&fixture.settings.resource)).layer(layer.layer(inner.clone()));
    let headers = [
        (SESSION, &*session),
        (VERSION, "2025-11-25"),
        ("content-type", "application/json"),
    ];
    let message = request("tools/list", json!({})).to_string();
    for (method, body, status) in [
        ("POST", &*message, 200),
        ("GET", "", 200),
        ("PUT", "", 405),
        ("POST", "not json", 400),
        ("POST", &*message, 200),
        ("DELETE", "", 200),
    ] {
        let request = fixture.request(method, &headers, Full::new(Bytes::from(body.to_owned())));
        let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service)
            .await
            .unwrap();
        let response = ready.call(request).await.unwrap();
        assert_eq!(response.status(), status, "{method} {body}");
    }
    let [unready, ready] = &*inner.calls;
    assert_eq!((unready.load(Relaxed), ready.load(Relaxed)), (0, 4));
}
