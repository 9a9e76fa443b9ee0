//! Sessions belong to their owner.

use serde_json::json;

use super::fixture::*;

/// E7: other owners get the response for an unknown session, and the session continues.
#[tokio::test]
async fn another_owner_finds_nothing() {
    let mut fixture = Fixture::guarded("");
    let identifier = fixture.initialize().await;
    let seen = fixture.inner.seen().len();
    for (other, token, code) in [
        (
            "another subject",
            fixture.test_issuer.token().subject("mallory"),
            "session.unknown",
        ),
        (
            "another client",
            fixture.test_issuer.token().client_id("other-client"),
            "session.unknown",
        ),
        (
            "no client",
            fixture.test_issuer.token().without("client_id"),
            "session.unknown",
        ),
        (
            "the subject in upper case",
            fixture.test_issuer.token().subject("ALICE"),
            "session.unknown",
        ),
        (
            "no subject",
            fixture.test_issuer.token().without("sub"),
            "session.no_owner",
        ),
    ] {
        fixture.use_token(&token);
        let response = fixture
            .post(&[(SESSION, &identifier)], request("tools/list", json!({})))
            .await;
        assert_eq!(response.status, 400, "{other}");
        assert_eq!(response.json(), no_session(), "{other}");
        assert_eq!(fixture.decided(), (400, Some(code)), "{other}");
        for method in ["GET", "DELETE"] {
            let response = fixture.send(method, &[(SESSION, &identifier)], "").await;
            assert_eq!(response.status, 400, "{other}, {method}");
            assert_eq!(
                response.body.as_ref(),
                b"Invalid or missing session ID".as_ref(),
                "{other}, {method}"
            );
            assert_eq!(fixture.decided(), (400, Some(code)), "{other}, {method}");
        }
    }
    assert_eq!(fixture.inner.seen().len(), seen);
    assert_eq!(fixture.sessions.len(), 1);

    fixture.use_token(&fixture.test_issuer.token().scope("other scopes"));
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &identifier)], "")
            .await
            .status,
        200
    );
}

/// E7: a request of the owner keeps a session for 30 minutes more; requests of other owners do not.
#[tokio::test]
async fn another_owner_does_not_keep_a_session_alive() {
    let mut fixture = Fixture::guarded("");
    let [kept, idle] = [fixture.initialize().await, fixture.initialize().await];
    let owner = fixture.test_issuer.token().expires_in(36_000);
    let mallory = fixture
        .test_issuer
        .token()
        .subject("mallory")
        .expires_in(36_000);
    fixture.clock.advance(20 * MINUTE);
    fixture.use_token(&owner);
    assert_eq!(
        fixture.send("GET", &[(SESSION, &kept)], "").await.status,
        200
    );
    fixture.use_token(&mallory);
    assert_eq!(
        fixture.send("GET", &[(SESSION, &idle)], "").await.status,
        400
    );
    assert_eq!(fixture.decided(), (400, Some("session.unknown")));

    fixture.clock.advance(10 * MINUTE - SECOND);
    assert_eq!(
        fixture.sessions.sweep(),
        0,
        "neither has been idle for 30 minutes"
    );
    fixture.clock.advance(SECOND);
    fixture.use_token(&owner);
    assert_eq!(
        fixture.send("GET", &[(SESSION, &kept)], "").await.status,
        200
    );
    assert_eq!(
        fixture.send("GET", &[(SESSION, &idle)], "").await.status,
        404
    );
    assert_eq!(fixture.decided(), (404, Some("session.ended")));
}

/// E7: an identifier alone authorizes nothing.
#[tokio::test]
async fn an_identifier_is_no_authorization() {
    let mut fixture = Fixture::guarded("");
    let identifier = fixture.initialize().await;
    fixture.use_no_token();
    for method in ["POST", "GET", "DELETE"] {
        let response = fixture.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!(response.status, 401);
        assert!(
            response
                .header("www-authenticate")
                .unwrap()
                .starts_with(CHALLENGE_START)
        );
    }
    assert_eq!(fixture.sessions.len(), 1);
}

/// E7: a token without a subject opens a session only if its issuer allows clients as owners.
#[tokio::test]
async fn a_token_without_subject_opens_no_session() {
    let mut fixture = Fixture::guarded("");
    let client = fixture.test_issuer.token().without("sub");
    fixture.use_token(&client);
    let response = fixture.post(&[], initialize()).await;
    assert_eq!(response.error(), (403, -32600));
    assert_eq!(response.json()["id"].clone(), json!(1));
    assert_eq!(response.header("www-authenticate"), None);
    assert_eq!(fixture.decided(), (403, Some("session.no_owner")));
    assert!(fixture.inner.seen().is_empty());

    let mut fixture = Fixture::guarded_by(|issuer| issuer.subjectless_client = true);
    fixture.use_token(&client);
    let identifier = fixture.initialize().await;
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &identifier)], "")
            .await
            .status,
        200
    );

    fixture.use_token(
        &fixture
            .test_issuer
            .token()
            .subject("test-client")
            .without("client_id"),
    );
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &identifier)], "")
            .await
            .status,
        400
    );
    assert_eq!(fixture.decided(), (400, Some("session.unknown")));
    fixture.use_token(
        &fixture
            .test_issuer
            .token()
            .without("sub")
            .without("client_id"),
    );
    assert_eq!(fixture.post(&[], initialize()).await.status, 403);
    assert_eq!(fixture.decided(), (403, Some("session.no_owner")));
}

/// F7: without authorization, sessions have no owner.
#[tokio::test]
async fn without_authorization_sessions_have_no_owner() {
    let mut fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.use_token(&fixture.test_issuer.token().subject("mallory"));
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &identifier)], "")
            .await
            .status,
        200
    );
    assert_eq!(fixture.inner.last().header("authorization"), None);
}
