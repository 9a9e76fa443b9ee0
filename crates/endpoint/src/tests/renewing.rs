//! New identifiers when scopes change, and the status that the owner of an ended session gets.

use serde_json::json;

use super::fixture::*;
use crate::EndedSessionStatus;

async fn ping(fixture: &Fixture, identifier: &str) -> Received {
    fixture
        .post(&[(SESSION, identifier)], request("ping", json!({})))
        .await
}

fn token(fixture: &Fixture, scope: &str) -> portcullis_testkit::TokenBuilder {
    fixture.test_issuer.token().scope(scope).expires_in(36_000)
}

/// Returns a fixture with an open session, and its identifier.
async fn opened(scope: &str) -> (Fixture, String) {
    let mut fixture = Fixture::guarded("");
    fixture.use_token(&token(&fixture, scope));
    let identifier = fixture.initialize().await;
    (fixture, identifier)
}

/// E8: with other scopes, the responses to POST and GET have a new identifier. The backend's
/// identifier stays the same.
#[tokio::test]
async fn other_scopes_renew_the_identifier() {
    let (mut fixture, first) = opened("mcp:tools").await;
    fixture.use_token(&token(&fixture, "mcp:tools mcp:admin"));
    fixture.inner.add_response(500, &[], "no");
    let response = ping(&fixture, &first).await;
    let second = response
        .header(SESSION)
        .expect("a new identifier")
        .to_owned();
    assert_eq!(response.status, 500, "for every response");
    assert_ne!(second, first);

    for _ in 0..2 {
        assert_eq!(
            fixture
                .send("GET", &[(SESSION, &first)], "")
                .await
                .header(SESSION),
            Some(&*second)
        );
    }
    for identifier in [&first, &second] {
        ping(&fixture, identifier).await;
        assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));
    }
    assert_eq!(
        ping(&fixture, &second).await.header(SESSION),
        None,
        "the client knows it"
    );
    assert_eq!(fixture.sessions.len(), 1);
}

/// E8: a refreshed token with the same scopes changes nothing, in any order.
#[tokio::test]
async fn a_refreshed_token_keeps_the_identifier() {
    let (mut fixture, identifier) = opened("mcp:tools mcp:admin").await;
    for refreshed in [
        "mcp:tools mcp:admin",
        "mcp:admin mcp:tools",
        "mcp:admin mcp:admin mcp:tools",
    ] {
        fixture.use_token(&token(&fixture, refreshed).claim("jti", refreshed));
        assert_eq!(
            ping(&fixture, &identifier).await.header(SESSION),
            None,
            "{refreshed}"
        );
    }
}

/// E8: the old identifier is valid until 5 min after the first use of the new one.
#[tokio::test]
async fn the_old_identifier_ends_after_its_grace() {
    let (mut fixture, first) = opened("a").await;
    fixture.use_token(&token(&fixture, "b"));
    let second = ping(&fixture, &first)
        .await
        .header(SESSION)
        .unwrap()
        .to_owned();
    fixture.clock.advance(20 * MINUTE);
    assert_eq!(
        ping(&fixture, &first).await.status,
        200,
        "the new one is unused"
    );
    assert_eq!(ping(&fixture, &second).await.status, 200);
    fixture.clock.advance(5 * MINUTE - SECOND);
    assert_eq!(
        ping(&fixture, &first).await.status,
        200,
        "the grace has not ended"
    );
    fixture.clock.advance(SECOND);
    assert_eq!(ping(&fixture, &first).await.status, 404);
    assert_eq!(fixture.decided(), (404, Some("session.ended")));
    assert_eq!(ping(&fixture, &second).await.status, 200);
    assert_eq!(fixture.ended(), []);
}

/// E7, E8: other owners can use neither identifier, and their attempts do not count as its first
/// use.
#[tokio::test]
async fn a_new_identifier_works_only_for_its_owner() {
    let (mut fixture, first) = opened("a").await;
    let owner = token(&fixture, "b");
    fixture.use_token(&owner);
    let second = ping(&fixture, &first)
        .await
        .header(SESSION)
        .unwrap()
        .to_owned();
    fixture.use_token(&token(&fixture, "b").subject("mallory"));
    for identifier in [&first, &second] {
        let response = ping(&fixture, identifier).await;
        assert_eq!(response.status, 400);
        assert_eq!(response.header(SESSION), None);
        assert_eq!(fixture.decided(), (400, Some("session.unknown")));
    }
    fixture.use_token(&owner);
    fixture.clock.advance(6 * MINUTE);
    assert_eq!(ping(&fixture, &first).await.header(SESSION), Some(&*second));
}

/// E8, E9: DELETE with either identifier ends the session.
#[tokio::test]
async fn either_identifier_ends_the_session() {
    for by_the_new_one in [false, true] {
        let (mut fixture, first) = opened("a").await;
        fixture.use_token(&token(&fixture, "b"));
        let second = ping(&fixture, &first)
            .await
            .header(SESSION)
            .unwrap()
            .to_owned();
        let named = if by_the_new_one { &second } else { &first };
        assert_eq!(
            fixture.send("DELETE", &[(SESSION, named)], "").await.status,
            200
        );
        for identifier in [&first, &second] {
            assert_eq!(ping(&fixture, identifier).await.status, 400);
        }
        assert!(fixture.sessions.is_empty());
    }
}

/// E8: a response that ends the session has no new identifier.
#[tokio::test]
async fn an_ended_session_is_not_renewed() {
    let (mut fixture, first) = opened("a").await;
    fixture.use_token(&token(&fixture, "b"));
    fixture.inner.add_response(404, &[], "");
    let response = ping(&fixture, &first).await;
    assert_eq!(response.status, 404);
    assert_eq!(response.header(SESSION), None);
}

/// E10: if configured, the owner gets 404 for a deleted session, in the format of each method.
/// Identifiers that were never issued, and those of other owners, still get 400.
#[tokio::test]
async fn the_owner_can_get_404_for_a_deleted_session() {
    let (mut fixture, identifier) = opened("a").await;
    fixture.settings.ended_status = EndedSessionStatus::NotFound;
    assert_eq!(
        fixture
            .send("DELETE", &[(SESSION, &identifier)], "")
            .await
            .status,
        200
    );
    for body in [
        "",
        "no json",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}",
    ] {
        let response = fixture.post(&[(SESSION, &identifier)], body).await;
        assert_eq!(response.error(), (404, -32000), "{body}");
        assert!(response.json()["id"].is_null());
        assert_eq!(fixture.decided(), (404, Some("session.ended")));
    }
    for method in ["GET", "DELETE"] {
        let response = fixture.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!(response.status, 404);
        assert_eq!(response.body.as_ref(), b"Session not found".as_ref());
    }
    assert_eq!(ping(&fixture, "made-up").await.status, 400);
    assert_eq!(fixture.send("GET", &[], "").await.status, 400);

    fixture.use_token(&token(&fixture, "a").subject("mallory"));
    assert_eq!(ping(&fixture, &identifier).await.error(), (400, -32000));
    assert_eq!(
        fixture
            .send("DELETE", &[(SESSION, &identifier)], "")
            .await
            .status,
        400
    );
}

/// E10: by default, a session that its owner deleted and an unknown one get the same response, also
/// after later ends. One that the server ended gets 404, from its owner alone. A setting can hide
/// that.
#[tokio::test]
async fn a_deleted_session_is_unknown_by_default() {
    let (mut fixture, deleted) = opened("a").await;
    let idle = fixture.initialize().await;
    fixture.send("DELETE", &[(SESSION, &deleted)], "").await;
    fixture.clock.advance(30 * MINUTE);
    fixture.use_token(&token(&fixture, "a").expires_in(3600));
    let unknown = ping(&fixture, "made-up").await;
    for _ in 0..2 {
        let ended = ping(&fixture, &deleted).await;
        assert_eq!(ended.status, 400);
        assert_eq!(ended.body, unknown.body);
        assert_eq!(fixture.decided(), (400, Some("session.ended")));
        assert_eq!(ping(&fixture, &idle).await.error(), (404, -32000));
        assert_eq!(fixture.decided(), (404, Some("session.ended")));
        for (identifier, status) in [(&deleted, 400), (&idle, 404)] {
            for method in ["GET", "DELETE"] {
                let response = fixture.send(method, &[(SESSION, identifier)], "").await;
                assert_eq!(response.status, status, "{method}");
            }
        }
    }
    fixture.settings.ended_status = EndedSessionStatus::BadRequest;
    assert_eq!(ping(&fixture, &idle).await.body, unknown.body);

    fixture.settings.ended_status = EndedSessionStatus::Auto;
    fixture.use_token(&token(&fixture, "a").subject("mallory").expires_in(3600));
    assert_eq!(ping(&fixture, &idle).await.body, unknown.body);
    assert_eq!(fixture.decided(), (400, Some("session.unknown")));
}
