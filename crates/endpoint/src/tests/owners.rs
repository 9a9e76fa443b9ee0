//! Whose sessions are whose, with tokens and without.

use serde_json::json;

use super::world::*;

/// E7: to anybody but its owner a session is unknown, and is not disturbed.
#[tokio::test]
async fn another_owner_finds_nothing() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    let seen = world.inner.seen().len();
    for other in [
        world.forge.token().subject("mallory"),
        world.forge.token().client_id("other-client"),
        world.forge.token().without("client_id"),
        world.forge.token().subject("ALICE"),
        world.forge.token().without("sub"),
    ] {
        world.comes_with(&other);
        let answer = world.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
        assert_eq!((answer.status, answer.json()), (400, no_session()));
        for method in ["GET", "DELETE"] {
            let answer = world.send(method, &[(SESSION, &identifier)], "").await;
            assert_eq!((answer.status, answer.body.as_ref()), (400, b"Invalid or missing session ID".as_ref()));
        }
    }
    assert_eq!((world.inner.seen().len(), world.sessions.len()), (seen, 1));
    world.comes_with(&world.forge.token().scope("other scopes"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
}

/// E7: the use by others does not keep a session alive.
#[tokio::test]
async fn another_owner_does_not_keep_a_session_alive() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    let owner = world.forge.token().expires_in(36_000);
    let mallory = world.forge.token().subject("mallory").expires_in(36_000);
    world.clock.advance(20 * MINUTE);
    world.comes_with(&mallory);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    world.clock.advance(11 * MINUTE);
    world.comes_with(&owner);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    assert_eq!(world.decided(), (400, Some("session.ended")));
}

/// E7: possession of an identifier authorizes nothing.
#[tokio::test]
async fn an_identifier_is_no_authorization() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    world.comes_without_token();
    for method in ["POST", "GET", "DELETE"] {
        let answer = world.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!(answer.status, 401);
        assert!(answer.header("www-authenticate").unwrap().starts_with(CHALLENGE_START));
    }
    assert_eq!(world.sessions.len(), 1);
}

/// E7: a token without subject opens a session only where its issuer lets clients own them.
#[tokio::test]
async fn a_token_without_subject_opens_no_session() {
    let mut world = World::guarded("");
    let client = world.forge.token().without("sub");
    world.comes_with(&client);
    let answer = world.post(&[], initialize()).await;
    assert_eq!(answer.error(), (403, -32600));
    assert_eq!((answer.json()["id"].clone(), answer.header("www-authenticate")), (json!(1), None));
    assert_eq!(world.decided(), (403, Some("session.no_owner")));
    assert!(world.inner.seen().is_empty());

    let mut world = World::guarded_by(|issuer| issuer.subjectless_client = true);
    world.comes_with(&client);
    let identifier = world.initialize().await;
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
    world.comes_with(&world.forge.token().subject("test-client").without("client_id"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    world.comes_with(&world.forge.token().without("sub").without("client_id"));
    assert_eq!(world.post(&[], initialize()).await.status, 403);
}

/// F7: without authorization sessions are kept by identifier alone.
#[tokio::test]
async fn without_authorization_anybody_may_use_a_session() {
    let mut world = World::open();
    let identifier = world.initialize().await;
    world.comes_with(&world.forge.token().subject("mallory"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
    assert_eq!(world.inner.last().header("authorization"), None);
}
