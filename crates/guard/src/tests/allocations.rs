//! The allocations per request with a cached token.

use allocation_counter::measure;
use http::{Method, Request};
use tower_layer::Layer;
use tower_service::Service;

use super::support::{Inner, Setup, With, request};
use crate::{
    GuardLayer,
    layer::admission::{NextStep, RequestHead, check_request},
    limit::ConcurrencyLimiter,
};

fn signed_request(setup: &Setup) -> Request<()> {
    request(Method::POST, "/mcp?x=1")
        .bearer(&setup.token("read"))
        .with("origin", "https://app.example")
}

/// Checking the host, origin, bearer, cached token, required scopes and routes allocates nothing.
#[tokio::test]
async fn checking_a_cached_token_allocates_nothing() {
    let mut setup = Setup::new()
        .require("read")
        .route(&[Method::POST], "/mcp", "read")
        .route(&[], "/admin/**", "admin");
    setup.settings.limits.in_flight = Some(ConcurrencyLimiter::new(2, 1));
    let resource = setup.resource();
    let request = signed_request(&setup);
    let first = GuardLayer::new(resource.clone())
        .layer(setup.inner.clone())
        .call(request.clone())
        .await
        .unwrap();
    assert_eq!(first.status(), 200);
    let head = RequestHead::new(&request, resource.clock.read(), None);
    let counted = measure(|| {
        assert!(matches!(check_request(&resource, head), NextStep::Admit(_)));
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// A whole request allocates for the request id and the extension.
#[tokio::test]
async fn admitting_a_cached_token_allocates_little() {
    let setup = Setup::new();
    let mut guard = GuardLayer::new(setup.resource()).layer(Inner::default());
    let request = signed_request(&setup);
    guard.call(request.clone()).await.unwrap();
    let mut future = None;
    let counted = measure(|| future = Some(guard.call(request)));
    drop(future);
    // The id; the caller; the extension map, its table and the entry; the list of the test service.
    assert!(counted.count_total <= 6, "{counted:?}");
}
