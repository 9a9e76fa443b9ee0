use allocation_counter::measure;
use http::{Method, Request};
use tower_layer::Layer;
use tower_service::Service;

use super::support::{Inner, Setup, With, request};
use crate::{
    ConcurrencyLimiter, GuardLayer,
    judge::{Admission, Head, Judgement, judge},
};

fn judged(setup: &Setup) -> Request<()> {
    request(Method::POST, "/mcp?x=1").bearer(&setup.token("read")).with("origin", "https://app.example")
}

/// Host, origin, bearer, cached verification, required scopes and routes: no allocation in all of them.
#[tokio::test]
async fn judging_a_cached_token_allocates_nothing() {
    let mut setup =
        Setup::new().require("read").route(&[Method::POST], "/mcp", "read").route(&[], "/admin/**", "admin");
    setup.settings.limits.in_flight = Some(ConcurrencyLimiter::new(2, 1));
    let resource = setup.resource();
    let request = judged(&setup);
    let first = GuardLayer::new(resource.clone()).layer(setup.inner.clone()).call(request.clone()).await.unwrap();
    assert_eq!(first.status(), 200);
    let head = Head::new(&request, None);
    let counted = measure(|| {
        let judgement = judge(&resource, head);
        assert!(matches!(judgement, Judgement::Judged(Admission::Admit { .. })));
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// The whole way: allocations for the request id and the extension.
#[tokio::test]
async fn admitting_a_cached_token_allocates_little() {
    let setup = Setup::new();
    let mut guard = GuardLayer::new(setup.resource()).layer(Inner::default());
    let request = judged(&setup);
    guard.call(request.clone()).await.unwrap();
    let mut future = None;
    let counted = measure(|| future = Some(guard.call(request)));
    drop(future);
    // The id; what the caller's clones share; the extension map, its table and the entry; the test service's own list.
    assert!(counted.count_total <= 6, "{counted:?}");
}
