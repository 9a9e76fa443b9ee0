//! Authentication: bearer tokens, challenges and admitted requests.

use http::{Method, Request, StatusCode};
use portcullis_testkit::ScriptedFetch;

use super::support::{METADATA_URL, Setup, With, caller, pairs, request};

fn post() -> Request<()> {
    request(Method::POST, "/mcp")
}

/// B1, B2, J1: no token, or another scheme, gets 401 with a challenge without an error code, and a
/// generic text.
#[tokio::test]
async fn a_missing_bearer_is_not_an_error() {
    let setup = Setup::new();
    for (request, code) in [
        (post(), "bearer.missing"),
        (
            post().with("authorization", "Basic dTpw"),
            "bearer.other_scheme",
        ),
        (
            post().with("authorization", "DPoP abc"),
            "bearer.other_scheme",
        ),
    ] {
        let answer = setup.send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{code}");
        assert_eq!(
            answer.parameters(),
            pairs(&[("realm", "test"), ("resource_metadata", METADATA_URL)])
        );
        assert_eq!(answer.challenge().param("error_description"), None);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(
            answer.body,
            r#"{"error":"unauthorized","error_description":"A valid bearer access token is required"}"#
        );
        assert_eq!(setup.sink.all().last().unwrap().code, Some(code));
    }
    assert_eq!(setup.inner.count(), 0);
}

/// B1: every 401 names the required scopes.
#[tokio::test]
async fn challenges_name_the_required_scopes() {
    let setup = Setup::new().require("write read");
    for request in [
        post(),
        post().bearer("rubbish"),
        post().bearer("a b"),
        request(Method::GET, "/?access_token=x"),
    ] {
        let answer = setup.send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let challenge = answer.challenge();
        assert_eq!(challenge.param("scope"), Some("read write"));
        assert_eq!(challenge.param("realm"), Some("test"));
        assert_eq!(challenge.param("resource_metadata"), Some(METADATA_URL));
    }
}

/// B2, J1: every rejected token gets `invalid_token` with the same generic text.
#[tokio::test]
async fn rejected_tokens_get_the_same_response() {
    let setup = Setup::new();
    let test_issuer = &setup.test_issuer;
    let mut answers = Vec::new();
    for (token, code) in [
        ("rubbish".to_owned(), "token.malformed"),
        (test_issuer.token().expires_in(-60).sign(), "token.expired"),
        (
            test_issuer.token().audience("https://other.example").sign(),
            "token.audience_mismatch",
        ),
        (
            test_issuer.token().issuer("https://other.example").sign(),
            "token.issuer_unknown",
        ),
    ] {
        let answer = setup.send(post().bearer(&token)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{code}");
        let expected = [
            ("error", "invalid_token"),
            ("realm", "test"),
            ("resource_metadata", METADATA_URL),
        ];
        assert_eq!(answer.parameters(), pairs(&expected));
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(setup.sink.all().last().unwrap().code, Some(code));
        answers.push((answer.challenge(), answer.body));
    }
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "{answers:?}"
    );
    assert_eq!(setup.inner.count(), 0);
}

/// B2: several `Authorization` headers, even with valid tokens, and malformed Bearers get
/// `invalid_request`.
#[tokio::test]
async fn malformed_bearers_are_invalid_requests() {
    let setup = Setup::new();
    let token = setup.token("");
    for (request, code) in [
        (post().bearer(&token).bearer(&token), "bearer.repeated"),
        (
            post().bearer(&token).with("authorization", "Basic dTpw"),
            "bearer.repeated",
        ),
        (post().with("authorization", "Bearer"), "bearer.malformed"),
        (
            post().bearer(&format!("{token},{token}")),
            "bearer.malformed",
        ),
    ] {
        let answer = setup.send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{code}");
        let expected = [
            ("error", "invalid_request"),
            ("realm", "test"),
            ("resource_metadata", METADATA_URL),
        ];
        assert_eq!(answer.parameters(), pairs(&expected));
        assert_eq!(setup.sink.all().last().unwrap().code, Some(code));
    }
    assert_eq!(setup.inner.count(), 0);
}

/// B2: while the issuer is unreachable, clients are asked to retry with the same token.
#[tokio::test]
async fn an_unreachable_issuer_is_not_a_token_error() {
    let issuer = ScriptedFetch::new();
    let setup = Setup::fetching(&issuer);
    issuer.fail(setup.test_issuer.metadata_url());
    let answer = setup.send(post().bearer(&setup.token(""))).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        answer.parameters(),
        pairs(&[("realm", "test"), ("resource_metadata", METADATA_URL)])
    );
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(setup.sink.only().code, Some("issuer.unavailable"));
}

/// F1: the bearer check applies to every method.
#[tokio::test]
async fn every_method_needs_a_token() {
    let setup = Setup::new();
    for method in [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PURGE",
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        assert_eq!(
            setup.send(request(method.clone(), "/mcp")).await.status,
            StatusCode::UNAUTHORIZED,
            "{method}"
        );
        let answer = setup
            .send(request(method.clone(), "/mcp").bearer(&setup.token("")))
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{method}");
    }
}

/// C12: the inner service receives the caller and the request id, but neither the token nor a
/// proof. Nothing else changes.
#[tokio::test]
async fn admitted_requests_have_a_caller_and_no_token() {
    let setup = Setup::new();
    let incoming = post()
        .with("authorization", format!("bEARER {}", setup.token("read")))
        .with("dpop", "proof")
        .with("x-request-id", "forged")
        .with("x-request-id", "twice")
        .with("cookie", "kept=1")
        .with("proxy-authorization", "kept");
    let answer = setup.send(incoming).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body.as_str(), "inner");

    let seen = setup.inner.take_only();
    let mut names: Vec<_> = seen
        .headers()
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["cookie", "host", "proxy-authorization", "x-request-id"]
    );

    let caller = caller(&seen);
    let principal = caller.principal().unwrap();
    assert_eq!(principal.subject(), Some("alice"));
    assert_eq!(principal.client(), Some("test-client"));
    assert!(caller.verified().is_some());
    assert_eq!(seen.headers()["x-request-id"], caller.request_id().as_str());
    assert!(!format!("{caller:?}").contains(&setup.token("read")[..20]));
}

/// J1: the guard generates the request id and ignores an inbound one. Request, response and
/// decision have the same id.
#[tokio::test]
async fn one_request_id() {
    let mut setup = Setup::new();
    setup
        .inner
        .headers
        .insert("x-request-id", "inner".parse().unwrap());
    let answer = setup
        .send(
            post()
                .bearer(&setup.token(""))
                .with("x-request-id", "forged"),
        )
        .await;
    let id = answer.header("x-request-id").unwrap().to_owned();
    assert_eq!(uuid::Uuid::try_parse(&id).unwrap().get_version_num(), 4);
    assert_eq!(
        setup.inner.take_only().headers()["x-request-id"],
        id.as_str()
    );
    assert_eq!(setup.sink.only().id, id);
    let rejected = setup.send(post().with("x-request-id", "forged")).await;
    let rejected_id = rejected.header("x-request-id").unwrap();
    assert_ne!(rejected_id, id);
    assert_eq!(setup.sink.all()[1].id, rejected_id);
}

/// F9: a token in the query is never read. Without a valid bearer: 401 with `invalid_request`.
#[tokio::test]
async fn a_token_in_the_query_is_not_accepted() {
    let setup = Setup::new();
    let token = setup.token("");
    for query in ["access_token", "x=1&access%5Ftoken", "%61ccess_token"] {
        let target = format!("/mcp?{query}={token}");
        for bad in [
            request(Method::GET, &target),
            request(Method::GET, &target).with("authorization", "Basic dTpw"),
            request(Method::GET, &target).bearer("rubbish"),
        ] {
            let answer = setup.send(bad).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{query}");
            assert_eq!(answer.challenge().param("error"), Some("invalid_request"));
            let decision = setup.sink.all().last().unwrap().clone();
            assert_eq!(decision.code, Some("bearer.in_query"));
            assert_eq!(decision.path.as_str(), "/mcp");
        }
    }
    assert_eq!(setup.inner.count(), 0);
}

/// F9: a token in the query in addition to a valid bearer gets 400, even if the bearer token is
/// cached.
#[tokio::test]
async fn a_second_token_in_the_query_is_rejected() {
    let setup = Setup::new();
    let token = setup.token("");
    let mut guard = setup.guard();
    for _ in 0..2 {
        let doubled = request(Method::GET, "/mcp?access_token=x").bearer(&token);
        let response = tower_service::Service::call(&mut guard, doubled)
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(setup.inner.count(), 0);
    assert_eq!(setup.sink.all()[1].subject.as_deref(), Some("alice"));
}

/// C11: a cached token is rejected after it expires.
#[tokio::test]
async fn a_cached_token_expires() {
    let setup = Setup::new();
    let token = setup.token("");
    let mut guard = setup.guard();
    let mut send = || tower_service::Service::call(&mut guard, post().bearer(&token));
    assert_eq!(send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(send().await.unwrap().status(), StatusCode::OK);
    setup.clock.advance(std::time::Duration::from_secs(311));
    assert_eq!(send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}
