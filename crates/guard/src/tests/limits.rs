use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::{Method, Request};

use super::support::{METADATA_PATH, Setup, With, request};
use crate::{Limiter, Peer, ProxyHeader, Rate, TrustedProxies};

fn limiter(setup: &Setup, requests: u32) -> Arc<Limiter> {
    Limiter::new(Rate::new(requests, Duration::from_secs(60)).unwrap(), 100, Arc::new(setup.clock.clone()))
}

fn from(peer: &str, request: Request<()>) -> Request<()> {
    let mut request = request;
    request.extensions_mut().insert(Peer(SocketAddr::new(peer.parse().unwrap(), 1234)));
    request
}

fn post() -> Request<()> {
    request(Method::POST, "/mcp")
}

/// J5: an address is limited before its token is looked at, and apart from others; documents and preflights stay open.
#[tokio::test]
async fn addresses_are_limited_first() {
    let mut setup = Setup::new();
    setup.settings.limits.address = Some(limiter(&setup, 2));
    let good = setup.token("");
    for (peer, request, status, code) in [
        ("192.0.2.1", post(), 401, Some("bearer.missing")),
        ("192.0.2.1", post().bearer(&good), 200, None),
        ("192.0.2.1", post().bearer(&good), 429, Some("limit.address")),
        ("192.0.2.1", post(), 429, Some("limit.address")),
        ("192.0.2.1", post().with("x-forwarded-for", "192.0.2.9"), 429, Some("limit.address")),
        ("192.0.2.1", request(Method::GET, METADATA_PATH), 200, None),
        ("192.0.2.2", post().bearer(&good), 200, None),
    ] {
        let answer = setup.send(from(peer, request)).await;
        assert_eq!((answer.status.as_u16(), setup.sink.all().pop().unwrap().code), (status, code));
        let refused = status == 429;
        assert_eq!(answer.header("retry-after"), refused.then_some("30"));
        assert!(!refused || answer.body.contains("too_many_requests"), "{}", answer.body);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
    setup.clock.advance(Duration::from_secs(30));
    assert_eq!(setup.send(from("192.0.2.1", post().bearer(&good))).await.status, 200);
}

/// J5: whoever stands behind a trusted proxy is told apart, and only a trusted one is believed.
#[tokio::test]
async fn clients_behind_a_trusted_proxy_count_apart() {
    let mut setup = Setup::new();
    setup.settings.limits.address = Some(limiter(&setup, 1));
    setup.settings.trusted_proxies = TrustedProxies::new(["10.0.0.0/8"], ProxyHeader::XForwardedFor).unwrap();
    for (peer, client, status, told) in [
        ("10.0.0.1", "198.51.100.1", 401, "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1", 429, "198.51.100.1"),
        ("10.0.0.2", "7.7.7.7, 198.51.100.1", 429, "198.51.100.1"),
        ("10.0.0.2", "198.51.100.2", 401, "198.51.100.2"),
        ("203.0.113.1", "198.51.100.3", 401, "203.0.113.1"),
        ("203.0.113.1", "198.51.100.4", 429, "203.0.113.1"),
    ] {
        let answer = setup.send(from(peer, post().with("x-forwarded-for", client))).await;
        assert_eq!(answer.status, status, "{peer} {client}");
        assert_eq!(setup.sink.all().pop().unwrap().peer.as_deref(), Some(told));
    }
}

/// J5: a principal is limited after its token was verified, whichever client and address it uses, and before scopes.
#[tokio::test]
async fn principals_are_limited() {
    let mut setup = Setup::new().require("read");
    setup.settings.limits.principal = Some(limiter(&setup, 2));
    let token = |subject: &str, client: &str, scope: &str| {
        setup.forge.token().subject(subject).claim("client_id", client).scope(scope).sign()
    };
    let (alice, other, bob) = (token("alice", "a", "read"), token("alice", "b", ""), token("bob", "a", "read"));
    for (token, status, code) in [
        ("x", 401, Some("token.malformed")),
        (alice.as_str(), 200, None),
        (&other, 403, Some("scope.insufficient")),
        (&alice, 429, Some("limit.principal")),
        (&other, 429, Some("limit.principal")),
        (&bob, 200, None),
    ] {
        let answer = setup.send(post().bearer(token)).await;
        assert_eq!((answer.status.as_u16(), setup.sink.all().pop().unwrap().code), (status, code));
        assert_eq!(answer.header("www-authenticate").is_some(), matches!(status, 401 | 403));
    }
    assert_eq!(setup.sink.all()[3].subject.as_deref(), Some("alice"));
}
