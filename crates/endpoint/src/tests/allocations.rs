//! The number of allocations of a request.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use allocation_counter::measure;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use portcullis_guard::GuardLayer;
use serde_json::json;
use tower_layer::Layer;
use tower_service::Service;

use super::fixture::*;
use crate::{Admitted, EndpointLayer};

/// Drops the request and responds at once, without allocating.
#[derive(Clone)]
struct Silent;

impl Service<Admitted> for Silent {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _admitted: Admitted) -> Self::Future {
        ready(Ok(Response::new(Full::default())))
    }
}

/// Returns the number of allocations of an admitted request, from the guard to the head of the
/// response.
fn count_allocations(fixture: &Fixture, headers: &[(&str, &str)], body: String) -> u64 {
    let endpoint = EndpointLayer::new(fixture.settings.clone())
        .unwrap()
        .layer(Silent);
    let mut guarded = GuardLayer::new(Arc::clone(&fixture.settings.resource)).layer(endpoint);
    let headers = [headers, &[("content-type", "application/json")]].concat();
    let request = fixture.request("POST", &headers, Full::new(Bytes::from(body)));
    let mut status = None;
    let counted = measure(|| {
        let future = pin!(guarded.call(request));
        if let Poll::Ready(Ok(response)) = future.poll(&mut Context::from_waker(Waker::noop())) {
            status = Some(response.status().as_u16());
        }
    });
    assert_eq!(status, Some(200));
    counted.count_total
}

/// A call in a session and a modern call, with a token in the cache, have a fixed number of
/// allocations.
#[tokio::test]
async fn admitting_a_message_allocates_little() {
    let fixture = Fixture::guarded("mcp:tools");
    let identifier = fixture.initialize().await;
    let call = json!({"name": "add", "arguments": {"a": 1}});
    let legacy = count_allocations(
        &fixture,
        &[(SESSION, &identifier)],
        request("tools/call", call.clone()).to_string(),
    );
    let headers = [
        (VERSION, "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "add"),
    ];
    let modern = count_allocations(&fixture, &headers, modern("tools/call", call).to_string());
    // The guard: the request's id, the path, the shared caller, three for the extension, two for
    // the response's headers. The endpoint: the operation, the reservation of the body, and the
    // backend's identifier. The test: its copy of the decision.
    assert!(modern <= 11, "{modern} {legacy}");
    assert!(legacy <= 12, "{modern} {legacy}");
}

/// L3: requests allocate no more while an event stream of their session is open.
#[tokio::test]
async fn an_open_stream_costs_other_requests_no_allocation() {
    let fixture = Fixture::guarded("mcp:tools");
    let identifier = fixture.initialize().await;
    let headers = [(SESSION, identifier.as_str())];
    let call = || request("tools/call", json!({"name": "add", "arguments": {"a": 1}})).to_string();
    let before = count_allocations(&fixture, &headers, call());
    fixture
        .inner
        .add_response(200, &[("content-type", "text/event-stream")], "");
    let stream = fixture
        .start("GET", &headers, Full::<Bytes>::default())
        .await;
    assert_eq!(fixture.settings.streams.len(), 1);
    assert_eq!(count_allocations(&fixture, &headers, call()), before);
    drop(stream);
}
