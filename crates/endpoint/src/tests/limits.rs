//! Room for new sessions.

use http_body_util::Full;

use super::world::*;

/// E9: at a limit new sessions are refused before the backend hears of them, and old ones live on.
#[tokio::test]
async fn a_full_store_refuses_new_sessions() {
    let world = World::guarded("");
    let identifier = world.initialize().await;
    world.initialize().await;
    let seen = world.inner.seen().len();
    let answer = world.post(&[], initialize()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(world.decided(), (503, Some("session.owner_full")));
    assert_eq!(world.inner.seen().len(), seen);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
}

/// E2: room is held while the backend thinks, and given back when the client goes away.
#[tokio::test]
async fn room_is_held_during_initialize() {
    let world = World::guarded("");
    let json = [("content-type", "application/json")];
    let start = || Box::pin(world.start("POST", &json, Full::from(initialize().to_string())));
    world.inner.falls_silent(true);
    let (mut first, mut second) = (start(), start());
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    assert_eq!(world.post(&[], initialize()).await.status, 503);
    drop(first);
    world.inner.falls_silent(false);
    world.initialize().await;
    assert_eq!(world.post(&[], initialize()).await.status, 503);
}
