//! EnvelopeLimits of sessions.

use http_body_util::{BodyExt as _, Full};
use portcullis_session::EndReason;

use super::world::*;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// E9: at the owner's limit a new session takes the place of the one that was unused for longest.
#[tokio::test]
async fn the_least_recently_used_session_ends() {
    let world = World::guarded("");
    let sessions = [world.initialize().await, world.initialize().await];
    world.clock.advance(MINUTE);
    assert_eq!(world.send("GET", &[(SESSION, &sessions[0])], "").await.status, 200);
    let third = world.initialize().await;
    assert_eq!(world.ended(), [EndReason::Evicted]);
    for (identifier, status) in [(&sessions[0], 200), (&sessions[1], 400), (&third, 200)] {
        assert_eq!(world.send("GET", &[(SESSION, identifier)], "").await.status, status);
    }
}

/// E9: where all sessions of the owner have a stream open or a request under way, new ones are refused before the backend
/// hears of them.
#[tokio::test]
async fn sessions_in_use_are_not_evicted() {
    let world = World::guarded("");
    let sessions = [world.initialize().await, world.initialize().await];
    let headers = sessions.each_ref().map(|identifier| [(SESSION, identifier.as_str())]);
    let stream = world.start("GET", &headers[0], Full::from("")).await.unwrap();
    world.inner.falls_silent(true);
    let mut delete = Box::pin(world.start("DELETE", &headers[1], Full::from("")));
    assert!(poll_once(&mut delete).is_pending());
    let seen = world.inner.seen().len();
    let answer = world.post(&[], initialize()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(world.decided(), (503, Some("session.owner_full")));
    assert_eq!(world.inner.seen().len(), seen);
    assert!(world.ended().is_empty());

    world.inner.falls_silent(false);
    drop(stream);
    world.initialize().await;
    assert_eq!(world.ended(), [EndReason::Evicted]);
}

/// E9: a session is in use until the answer to its `initialize` has ended.
#[tokio::test]
async fn an_opening_session_is_in_use() {
    let world = World::guarded("");
    let start = async || {
        world.inner.answers(200, &[(SESSION, BACKEND)], "{}");
        world.start("POST", &JSON, Full::from(initialize().to_string())).await.unwrap()
    };
    let (first, _second) = (start().await, start().await);
    assert_eq!(world.post(&[], initialize()).await.status, 503);
    drop(first);
    world.initialize().await;
    assert_eq!(world.ended(), [EndReason::Evicted]);
}

/// E9: a session for which no place is left when the backend has opened it is refused with the id of its message, and no other
/// one ends.
#[tokio::test]
async fn a_session_without_a_place_is_refused() {
    let world = World::guarded("");
    let sessions = [world.initialize().await, world.initialize().await];
    world.inner.falls_silent(true);
    let mut opening = Box::pin(world.start("POST", &JSON, Full::from(initialize().to_string())));
    assert!(poll_once(&mut opening).is_pending());
    world.inner.falls_silent(false);
    let headers = sessions.each_ref().map(|identifier| [(SESSION, identifier.as_str())]);
    let _streams = [
        world.start("GET", &headers[0], Full::from("")).await.unwrap(),
        world.start("GET", &headers[1], Full::from("")).await.unwrap(),
    ];
    world.inner.answers(200, &[(SESSION, BACKEND)], "{}");
    let refused = opening.await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().get(SESSION)), (503, None));
    assert_eq!(refused.headers()["retry-after"], "30");
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["id"], 1);
    assert_eq!(world.decided(), (503, Some("session.owner_full")));
    assert_eq!((world.ended(), world.sessions.len()), (vec![], 2));
}

/// E9: an `initialize` that the backend refuses, or whose client goes away, ends no session.
#[tokio::test]
async fn a_failed_initialize_ends_nothing() {
    let world = World::guarded("");
    world.initialize().await;
    world.initialize().await;
    for status in [400, 404, 500] {
        world.inner.answers(status, &[(SESSION, BACKEND)], "{}");
        assert_eq!(world.post(&[], initialize()).await.status, status);
    }
    world.inner.falls_silent(true);
    let mut opening = Box::pin(world.start("POST", &JSON, Full::from(initialize().to_string())));
    assert!(poll_once(&mut opening).is_pending());
    drop(opening);
    assert_eq!((world.ended(), world.sessions.len()), (vec![], 2));
}

/// E2: capacity is reserved while the backend thinks, and given back when the client goes away.
#[tokio::test]
async fn capacity_is_reserved_during_initialize() {
    let world = World::guarded("");
    let start = || Box::pin(world.start("POST", &JSON, Full::from(initialize().to_string())));
    world.inner.falls_silent(true);
    let (mut first, mut second) = (start(), start());
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    assert_eq!(world.post(&[], initialize()).await.status, 503);
    drop(first);
    world.inner.falls_silent(false);
    world.initialize().await;
    drop(second);
}
