//! New identifiers when scopes change, and what the owner of an ended session hears.

use serde_json::json;

use super::world::*;
use crate::EndedSessionStatus;

async fn ping(world: &World, identifier: &str) -> Answer {
    world.post(&[(SESSION, identifier)], request("ping", json!({}))).await
}

fn token(world: &World, scope: &str) -> portcullis_testkit::TokenBuilder {
    world.forge.token().scope(scope).expires_in(36_000)
}

async fn opened(scope: &str) -> (World, String) {
    let mut world = World::guarded("");
    world.comes_with(&token(&world, scope));
    let identifier = world.initialize().await;
    (world, identifier)
}

/// E8: with other scopes the answer carries a new identifier, of POST and GET alike; the backend's stays the same.
#[tokio::test]
async fn other_scopes_renew_the_identifier() {
    let (mut world, first) = opened("mcp:tools").await;
    world.comes_with(&token(&world, "mcp:tools mcp:admin"));
    world.inner.answers(500, &[], "no");
    let answer = ping(&world, &first).await;
    let second = answer.header(SESSION).expect("a new identifier").to_owned();
    assert_eq!(answer.status, 500, "whatever the answer is");
    assert_ne!(second, first);
    for _ in 0..2 {
        assert_eq!(world.send("GET", &[(SESSION, &first)], "").await.header(SESSION), Some(&*second));
    }
    for identifier in [&first, &second] {
        ping(&world, identifier).await;
        assert_eq!(world.inner.last().header(SESSION), Some(BACKEND));
    }
    assert_eq!(ping(&world, &second).await.header(SESSION), None, "the client knows it");
    assert_eq!(world.sessions.len(), 1);
}

/// E8: a refreshed token with the same scopes changes nothing, in whatever order it names them.
#[tokio::test]
async fn a_refreshed_token_keeps_the_identifier() {
    let (mut world, identifier) = opened("mcp:tools mcp:admin").await;
    for refreshed in ["mcp:tools mcp:admin", "mcp:admin mcp:tools", "mcp:admin mcp:admin mcp:tools"] {
        world.comes_with(&token(&world, refreshed).claim("jti", refreshed));
        assert_eq!(ping(&world, &identifier).await.header(SESSION), None, "{refreshed}");
    }
}

/// E8: the old identifier resolves until 5 min after the new one's first use, and is an ended one then.
#[tokio::test]
async fn the_old_identifier_ends_after_its_grace() {
    let (mut world, first) = opened("a").await;
    world.comes_with(&token(&world, "b"));
    let second = ping(&world, &first).await.header(SESSION).unwrap().to_owned();
    world.clock.advance(20 * MINUTE);
    assert_eq!(ping(&world, &first).await.status, 200, "nobody has used the new one");
    assert_eq!(ping(&world, &second).await.status, 200);
    world.clock.advance(5 * MINUTE);
    assert_eq!(ping(&world, &first).await.status, 400);
    assert_eq!(world.decided(), (400, Some("session.ended")));
    assert_eq!(ping(&world, &second).await.status, 200);
    assert_eq!(world.ended(), []);
}

/// E7, E8: others can use neither identifier, and theirs is no first use.
#[tokio::test]
async fn a_new_identifier_is_nobody_elses() {
    let (mut world, first) = opened("a").await;
    let owner = token(&world, "b");
    world.comes_with(&owner);
    let second = ping(&world, &first).await.header(SESSION).unwrap().to_owned();
    world.comes_with(&token(&world, "b").subject("mallory"));
    for identifier in [&first, &second] {
        let answer = ping(&world, identifier).await;
        assert_eq!((answer.status, answer.header(SESSION)), (400, None));
        assert_eq!(world.decided(), (400, Some("session.unknown")));
    }
    world.comes_with(&owner);
    world.clock.advance(6 * MINUTE);
    assert_eq!(ping(&world, &first).await.header(SESSION), Some(&*second));
}

/// E8, E9: DELETE by either identifier ends the session, and with it both.
#[tokio::test]
async fn either_identifier_ends_the_session() {
    for by_the_new_one in [false, true] {
        let (mut world, first) = opened("a").await;
        world.comes_with(&token(&world, "b"));
        let second = ping(&world, &first).await.header(SESSION).unwrap().to_owned();
        let named = if by_the_new_one { &second } else { &first };
        assert_eq!(world.send("DELETE", &[(SESSION, named)], "").await.status, 200);
        for identifier in [&first, &second] {
            assert_eq!(ping(&world, identifier).await.status, 400);
        }
        assert!(world.sessions.is_empty());
    }
}

/// E8: no new identifier leaves with an answer that ends the session.
#[tokio::test]
async fn an_ended_session_is_not_renewed() {
    let (mut world, first) = opened("a").await;
    world.comes_with(&token(&world, "b"));
    world.inner.answers(404, &[], "");
    let answer = ping(&world, &first).await;
    assert_eq!((answer.status, answer.header(SESSION)), (404, None));
}

/// E10: where it is configured, the owner hears 404 for a session that has ended, in the form of each method; what was
/// never issued, and whatever is somebody else's, is 400 as ever.
#[tokio::test]
async fn the_owner_may_hear_that_a_session_has_ended() {
    let (mut world, identifier) = opened("a").await;
    world.settings.ended_status = EndedSessionStatus::NotFound;
    assert_eq!(world.send("DELETE", &[(SESSION, &identifier)], "").await.status, 200);
    for body in ["", "no json", "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"] {
        let answer = world.post(&[(SESSION, &identifier)], body).await;
        assert_eq!(answer.error(), (404, -32000), "{body}");
        assert!(answer.json()["id"].is_null());
        assert_eq!(world.decided(), (404, Some("session.ended")));
    }
    for method in ["GET", "DELETE"] {
        let answer = world.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!((answer.status, answer.body.as_ref()), (404, b"Session not found".as_ref()));
    }
    assert_eq!(ping(&world, "made-up").await.status, 400);
    assert_eq!(world.send("GET", &[], "").await.status, 400);
    world.comes_with(&token(&world, "a").subject("mallory"));
    assert_eq!(ping(&world, &identifier).await.error(), (400, -32000));
    assert_eq!(world.send("DELETE", &[(SESSION, &identifier)], "").await.status, 400);
}

/// E10: unless it is configured, an ended session is an unknown one to its owner, too.
#[tokio::test]
async fn ended_is_unknown_by_default() {
    let (world, identifier) = opened("a").await;
    world.send("DELETE", &[(SESSION, &identifier)], "").await;
    let (ended, unknown) = (ping(&world, &identifier).await, ping(&world, "made-up").await);
    assert_eq!((ended.status, ended.body), (400, unknown.body));
}
