//! New decisions about requests whose service waits before it uses them.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use portcullis_metadata::Scopes;
use portcullis_testkit::ScriptedFetch;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use super::support::{Setup, With, caller, request};
use crate::{
    GuardLayer, ProtectedResource, SupersededRequest,
    authorize::{ClaimRule, ClaimTest},
};

/// The time between the decision and the completeness of the body.
type Wait = Arc<dyn Fn() + Send + Sync>;

/// A service that waits as for a body, asks for a new decision if it needs one, and records the
/// scopes of the caller.
#[derive(Clone)]
struct Slow {
    wait: Wait,
    used: Arc<Mutex<Vec<String>>>,
}

impl Service<Request<()>> for Slow {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let Self { wait, used } = self.clone();
        Box::pin(async move {
            wait();
            let caller = caller(&request);
            if caller.is_superseded() {
                let mut response = Response::new(String::new());
                response
                    .extensions_mut()
                    .insert(SupersededRequest(request.map(|()| Bytes::new())));
                return Ok(response);
            }
            if caller.needs_new_decision() {
                poll_fn(|_| caller.poll_new_decision()).await;
                assert!(!caller.needs_new_decision());
            }
            let scopes = caller
                .principal()
                .map(|principal| principal.scopes().to_string());
            used.lock().push(scopes.unwrap_or_default());
            Ok(Response::new("used".to_owned()))
        })
    }
}

/// Sends a request whose service waits, and returns the response and the scopes with which it was
/// used.
async fn send(
    resource: Arc<ProtectedResource>,
    token: &str,
    wait: impl Fn() + Send + Sync + 'static,
) -> (Response<()>, Vec<String>) {
    let slow = Slow {
        wait: Arc::new(wait),
        used: Arc::default(),
    };
    let used = Arc::clone(&slow.used);
    let guard = GuardLayer::new(resource).layer(slow);
    let response = guard
        .oneshot(request(Method::POST, "/mcp").bearer(token))
        .await
        .unwrap();
    let used = used.lock().clone();
    (response.map(drop), used)
}

/// N3: a decision holds for a second. A token that has expired since is rejected, and reported
/// once.
#[tokio::test]
async fn an_expired_token_is_rejected() {
    for (wait, status) in [(1, 200), (290, 200), (311, 401)] {
        let setup = Setup::new();
        let clock = setup.clock.clone();
        let token = setup.token("read");
        let (response, used) = send(setup.resource(), &token, move || {
            clock.advance(Duration::from_secs(wait))
        })
        .await;
        assert_eq!(response.status(), status, "{wait}");
        assert_eq!(used.len(), usize::from(status == 200), "{wait}");
        assert_eq!(
            setup.sink.only().code,
            (status == 401).then_some("token.expired"),
            "{wait}"
        );
        assert_eq!(
            response.headers().contains_key("www-authenticate"),
            status == 401
        );
    }
}

/// N3: tokens of the issuer that an administrator has dropped are verified again, and introspected
/// ones whose response is stale are introspected again. The service sees the new scopes.
#[tokio::test]
async fn an_introspected_token_is_introspected_again() {
    let issuer = ScriptedFetch::new();
    let setup = Setup::introspecting(&issuer).require("read");
    issuer.publish(&setup.test_issuer);
    let aud = setup.settings.resource.as_str().to_owned();
    let endpoint = setup.test_issuer.endpoint("introspect");
    let response = |active: bool, scope: &str| json!({ "active": active, "aud": aud, "sub": "alice", "scope": scope });
    for (latest, status, scopes, code) in [
        (response(true, "read write"), 200, &["read write"][..], None),
        (
            response(true, "write"),
            403,
            &[],
            Some("scope.insufficient"),
        ),
        (response(false, "read"), 401, &[], Some("token.inactive")),
    ] {
        issuer.serve(&endpoint, 200, response(true, "read").to_string());
        let (clock, issuer, endpoint) = (setup.clock.clone(), issuer.clone(), endpoint.clone());
        let (response, used) = send(setup.resource(), "opaque", move || {
            clock.advance(Duration::from_secs(31));
            issuer.serve(&endpoint, 200, latest.to_string());
        })
        .await;
        assert_eq!(response.status(), status);
        assert_eq!(used, scopes);
        let decisions = setup.sink.take();
        assert_eq!(
            decisions
                .iter()
                .map(|decision| decision.code)
                .collect::<Vec<_>>(),
            [code]
        );
        setup.clock.advance(Duration::from_secs(31));
    }
}

/// N3: an issuer that cannot be asked again is not taken for consent.
#[tokio::test]
async fn an_unavailable_issuer_admits_nothing() {
    let issuer = ScriptedFetch::new();
    let setup = Setup::introspecting(&issuer);
    issuer.publish(&setup.test_issuer);
    let aud = setup.settings.resource.as_str();
    let endpoint = setup.test_issuer.endpoint("introspect");
    issuer.serve(
        &endpoint,
        200,
        json!({ "active": true, "aud": aud, "sub": "alice" }).to_string(),
    );
    let (clock, fails) = (setup.clock.clone(), issuer.clone());
    let (response, used) = send(setup.resource(), "opaque", move || {
        clock.advance(Duration::from_secs(31));
        fails.fail(&endpoint);
    })
    .await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(used, [""; 0]);
}

/// Rates are not counted again by a new decision, and the request still counts as one in progress.
#[tokio::test]
async fn a_new_decision_is_not_another_request() {
    let mut setup = Setup::new();
    let rate = crate::limit::Rate::new(1, Duration::from_secs(60)).unwrap();
    setup.settings.limits.per_principal = Some(crate::limit::RateLimiter::new(
        rate,
        100,
        Arc::new(setup.clock.clone()),
    ));
    setup.settings.limits.in_flight = Some(crate::limit::ConcurrencyLimiter::new(1, 1));
    let clock = setup.clock.clone();
    let token = setup.token("read");
    let (response, _) = send(setup.resource(), &token, move || {
        clock.advance(Duration::from_secs(5))
    })
    .await;
    assert_eq!(response.status(), 200);
}

/// N3: if the settings were replaced, the request is returned with its token, for the new ones, and
/// no decision is reported.
#[tokio::test]
async fn a_superseded_request_is_returned() {
    let mut setup = Setup::new();
    setup
        .settings
        .claims
        .push(ClaimRule::new("sub", ClaimTest::OneOf(vec!["alice".into()])).unwrap());
    setup.settings.required_scopes = Scopes::parse("read").unwrap();
    let resource = setup.resource();
    let superseded = Arc::clone(&resource);
    let token = setup.token("read");
    let (mut response, used) = send(resource, &token, move || superseded.mark_superseded()).await;
    let SupersededRequest(request) = response.extensions_mut().remove().unwrap();
    assert_eq!(
        request.headers()["authorization"],
        format!("Bearer {token}")
    );
    assert_eq!(used, [""; 0]);
    assert_eq!(setup.sink.all(), []);
}
