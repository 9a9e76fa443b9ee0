//! Rate limits per address and principal, and limits on requests in progress.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;
use tower_layer::Layer as _;
use tower_service::Service as _;

use super::support::{Inner, METADATA_PATH, Setup, With, request};
use crate::{
    Authentication, GuardBody, GuardLayer, Peer, ProxyHeader, TrustedProxies,
    limit::{ConcurrencyLimiter, Rate, RateLimiter},
};

fn limiter(setup: &Setup, requests: u32) -> Arc<RateLimiter> {
    RateLimiter::new(
        Rate::new(requests, Duration::from_secs(60)).unwrap(),
        100,
        Arc::new(setup.clock.clone()),
    )
}

fn from(peer: &str, request: Request<()>) -> Request<()> {
    let mut request = request;
    request
        .extensions_mut()
        .insert(Peer(SocketAddr::new(peer.parse().unwrap(), 1234)));
    request
}

fn post() -> Request<()> {
    request(Method::POST, "/mcp")
}

/// J5: the limit per address applies before the token is read. Metadata requests and preflights do
/// not count.
#[tokio::test]
async fn addresses_are_limited_first() {
    let mut setup = Setup::new();
    setup.settings.limits.per_address = Some(limiter(&setup, 2));
    let good = setup.token("");
    for (peer, request, status, code) in [
        ("192.0.2.1", post(), 401, Some("bearer.missing")),
        ("192.0.2.1", post().bearer(&good), 200, None),
        (
            "192.0.2.1",
            post().bearer(&good),
            429,
            Some("limit.address"),
        ),
        ("192.0.2.1", post(), 429, Some("limit.address")),
        (
            "192.0.2.1",
            post().with("x-forwarded-for", "192.0.2.9"),
            429,
            Some("limit.address"),
        ),
        ("192.0.2.1", request(Method::GET, METADATA_PATH), 200, None),
        ("192.0.2.2", post().bearer(&good), 200, None),
    ] {
        let answer = setup.send(from(peer, request)).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(setup.sink.all().pop().unwrap().code, code);
        let rejected = status == 429;
        assert_eq!(answer.header("retry-after"), rejected.then_some("30"));
        assert!(
            !rejected || answer.body.contains("too_many_requests"),
            "{}",
            answer.body
        );
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
    setup.clock.advance(Duration::from_secs(30));
    assert_eq!(
        setup
            .send(from("192.0.2.1", post().bearer(&good)))
            .await
            .status,
        200
    );
}

/// J5: requests without a valid token are limited by address. Those with one are neither counted
/// nor rejected.
#[tokio::test]
async fn rejected_requests_are_limited() {
    let mut setup = Setup::new();
    setup.settings.limits.rejected_per_address = Some(limiter(&setup, 2));
    let good = setup.token("");
    let other = setup.token("mcp:tools");
    for (peer, request, status, code) in [
        ("192.0.2.1", post().bearer(&good), 200, None),
        ("192.0.2.1", post(), 401, Some("bearer.missing")),
        (
            "192.0.2.1",
            post().bearer("x"),
            401,
            Some("token.malformed"),
        ),
        ("192.0.2.1", post().bearer("x"), 429, Some("limit.rejected")),
        ("192.0.2.1", post(), 429, Some("limit.rejected")),
        ("192.0.2.1", post().bearer(&good), 200, None),
        ("192.0.2.1", post().bearer(&other), 200, None),
        ("192.0.2.2", post(), 401, Some("bearer.missing")),
    ] {
        let answer = setup.send(from(peer, request)).await;
        assert_eq!(answer.status.as_u16(), status, "{code:?}");
        assert_eq!(setup.sink.all().pop().unwrap().code, code);
        let retry_after = (status == 429).then_some("30");
        assert_eq!(answer.header("retry-after"), retry_after);
    }
}

/// J5: clients behind a trusted proxy have separate limits. The header of an untrusted peer is
/// ignored.
#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_separate_limits() {
    let mut setup = Setup::new();
    setup.settings.limits.per_address = Some(limiter(&setup, 1));
    setup.settings.trusted_proxies =
        TrustedProxies::new(["10.0.0.0/8"], ProxyHeader::XForwardedFor).unwrap();
    for (peer, client, status, decision) in [
        ("10.0.0.1", "198.51.100.1", 401, "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1", 429, "198.51.100.1"),
        ("10.0.0.2", "7.7.7.7, 198.51.100.1", 429, "198.51.100.1"),
        ("10.0.0.2", "198.51.100.2", 401, "198.51.100.2"),
        ("203.0.113.1", "198.51.100.3", 401, "203.0.113.1"),
        ("203.0.113.1", "198.51.100.4", 429, "203.0.113.1"),
    ] {
        let answer = setup
            .send(from(peer, post().with("x-forwarded-for", client)))
            .await;
        assert_eq!(answer.status, status, "{peer} {client}");
        assert_eq!(
            setup.sink.all().pop().unwrap().client_address.as_deref(),
            Some(decision)
        );
    }
}

/// J5: the limit per principal applies after the token is verified and before scopes, for all
/// clients and addresses.
#[tokio::test]
async fn principals_are_limited() {
    let mut setup = Setup::new().require("read");
    setup.settings.limits.per_principal = Some(limiter(&setup, 2));
    let token = |subject: &str, client: &str, scope: &str| {
        setup
            .test_issuer
            .token()
            .subject(subject)
            .claim("client_id", client)
            .scope(scope)
            .sign()
    };
    let (alice, other, bob) = (
        token("alice", "a", "read"),
        token("alice", "b", ""),
        token("bob", "a", "read"),
    );
    for (token, status, code) in [
        ("x", 401, Some("token.malformed")),
        (alice.as_str(), 200, None),
        (&other, 403, Some("scope.insufficient")),
        (&alice, 429, Some("limit.principal")),
        (&other, 429, Some("limit.principal")),
        (&bob, 200, None),
    ] {
        let answer = setup.send(post().bearer(token)).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(setup.sink.all().pop().unwrap().code, code);
        assert_eq!(
            answer.header("www-authenticate").is_some(),
            matches!(status, 401 | 403)
        );
    }
    assert_eq!(setup.sink.all()[3].subject.as_deref(), Some("alice"));
}

/// L9: a request is in progress until the body of its response ends or is dropped. Beyond the limit
/// the principal gets 429, and nothing reaches the inner service.
#[tokio::test]
async fn requests_in_progress_are_limited() {
    let mut setup = Setup::new().require("read");
    setup.settings.limits.in_flight = Some(ConcurrencyLimiter::new(2, 1));
    let alice = setup
        .test_issuer
        .token()
        .subject("alice")
        .scope("read")
        .sign();
    let bob = setup
        .test_issuer
        .token()
        .subject("bob")
        .scope("read")
        .sign();
    let guard = setup.guard();
    let send = |token: &str| guard.clone().oneshot(post().bearer(token));
    let mut read = send(&alice).await.unwrap();
    let dropped = send(&alice).await.unwrap();
    let rejected = send(&alice).await.unwrap();
    assert_eq!(rejected.status().as_u16(), 429);
    assert_eq!(
        rejected.headers()["retry-after"],
        HeaderValue::from_static("1")
    );

    let decision = setup.sink.all().pop().unwrap();
    assert_eq!(decision.code, Some("limit.in_flight"));
    assert_eq!(decision.subject.as_deref(), Some("alice"));
    assert_eq!(setup.inner.count(), 2);
    assert_eq!(send(&bob).await.unwrap().status(), 200);
    assert_eq!(
        send(&setup.test_issuer.token().subject("alice").sign())
            .await
            .unwrap()
            .status(),
        403
    );

    while read.frame().await.is_some() {}
    assert_eq!(send(&alice).await.unwrap().status(), 200);
    let _third = send(&alice).await.unwrap();
    assert_eq!(send(&alice).await.unwrap().status(), 429);

    drop(dropped);
    assert_eq!(send(&alice).await.unwrap().status(), 200);
}

/// L9: an event stream counts as a stream and not as a request. Beyond the limit a GET gets 429. An
/// unsafe method has been executed, so its stream is passed on and counts as a request.
#[tokio::test]
async fn streams_do_not_count_as_requests() {
    let mut setup = Setup::new();
    setup.settings.limits.in_flight = Some(ConcurrencyLimiter::new(1, 2));
    let token = setup.token("");
    let mut streaming = setup.inner.clone();
    streaming.headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("Text/Event-Stream ; charset=utf-8"),
    );
    let resource = setup.resource();
    let send = |method: Method, inner: &Inner| {
        GuardLayer::new(resource.clone())
            .layer(inner.clone())
            .oneshot(request(method, "/mcp").bearer(&token))
    };
    let first = send(Method::POST, &streaming).await.unwrap();
    let _second = send(Method::POST, &streaming).await.unwrap();
    let rejected = send(Method::GET, &streaming).await.unwrap();
    assert_eq!(rejected.status().as_u16(), 429);
    assert_eq!(
        rejected.headers()["retry-after"],
        HeaderValue::from_static("5")
    );
    assert_eq!(rejected.headers()[CONTENT_TYPE], "application/json");
    assert_eq!(setup.sink.all().pop().unwrap().code, Some("limit.streams"));

    let request = send(Method::POST, &setup.inner).await.unwrap();
    assert_eq!(request.status().as_u16(), 200);
    assert_eq!(
        send(Method::POST, &setup.inner)
            .await
            .unwrap()
            .status()
            .as_u16(),
        429
    );
    drop(request);
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let executed = send(method.clone(), &streaming).await.unwrap();
        assert_eq!(executed.status().as_u16(), 200, "{method}");
        assert_eq!(
            send(Method::POST, &setup.inner)
                .await
                .unwrap()
                .status()
                .as_u16(),
            429,
            "{method}"
        );
    }

    drop(first);
    assert_eq!(send(Method::GET, &streaming).await.unwrap().status(), 200);
}

/// L9: a request that is dropped before or after the head of its response is no longer counted.
/// Without authentication nothing is counted.
#[tokio::test]
async fn dropped_requests_are_not_counted() {
    let mut setup = Setup::new();
    setup.settings.limits.in_flight = Some(ConcurrencyLimiter::new(1, 1));
    let token = setup.token("");
    let guard = setup.guard();
    for _ in 0..3 {
        drop(guard.clone().call(post().bearer(&token)));
        let response = guard.clone().call(post().bearer(&token)).await.unwrap();
        assert_eq!(response.status(), 200);
        let (_, body): (_, GuardBody<String>) = response.into_parts();
        drop(body);
    }
    setup.settings.authentication = Authentication::Off;
    let guard = setup.guard();
    let answers = [
        guard.clone().oneshot(post()).await.unwrap(),
        guard.clone().oneshot(post()).await.unwrap(),
    ];
    assert!(answers.iter().all(|answer| answer.status() == 200));
}
