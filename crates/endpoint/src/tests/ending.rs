//! What ends a session, and what keeps it.

use http_body_util::Full;
use portcullis_session::EndReason;
use serde_json::json;

use super::world::*;

/// E9: DELETE is passed on, and ends the session whatever the backend has to say; a failure of the backend's is told
/// apart, so that it can be asked again.
#[tokio::test]
async fn delete_ends_the_session() {
    use EndReason::{DeleteFailed, Deleted};
    for (backend, client, reason) in [
        (200, 200, Deleted),
        (204, 204, Deleted),
        (202, 202, Deleted),
        (404, 204, Deleted),
        (405, 204, Deleted),
        (301, 204, DeleteFailed),
        (403, 204, DeleteFailed),
        (500, 204, DeleteFailed),
        (502, 204, DeleteFailed),
    ] {
        let world = World::open();
        let identifier = world.initialize().await;
        world.inner.answers(backend, &[(SESSION, BACKEND)], "");
        let answer = world.send("DELETE", &[(SESSION, &identifier)], "").await;
        assert_eq!((answer.status, answer.header(SESSION)), (client, None));
        assert_eq!((world.inner.last().method.as_str(), world.inner.last().header(SESSION)), ("DELETE", Some(BACKEND)));
        assert_eq!(world.ended(), [reason]);
        assert_eq!(world.send("DELETE", &[(SESSION, &identifier)], "").await.status, 400);
    }
}

/// E9: a client that does not wait for the answer to its DELETE has ended its session all the same.
#[tokio::test]
async fn a_delete_that_nobody_waits_for_ends_the_session() {
    let world = World::open();
    let identifier = world.initialize().await;
    world.inner.falls_silent(true);
    let headers = [(SESSION, &*identifier)];
    let mut delete = Box::pin(world.start("DELETE", &headers, Full::from("")));
    assert!(poll_once(&mut delete).is_pending());
    drop(delete);
    assert_eq!(world.ended(), [EndReason::DeleteFailed]);
}

/// E9: the backend's 404 to its own identifier ends the session; other failures do not.
#[tokio::test]
async fn a_backend_that_forgot_the_session_ends_it() {
    let world = World::open();
    let identifier = world.initialize().await;
    for status in [400, 401, 405, 500, 503] {
        world.inner.answers(status, &[], "");
        let answer = world.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(answer.status, status);
    }
    assert!(world.ended().is_empty());
    world.inner.answers(404, &[(SESSION, BACKEND)], "");
    let answer = world.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    assert_eq!((answer.status, answer.header(SESSION)), (404, None));
    assert_eq!(world.ended(), [EndReason::TransportClosed]);
    let answer = world.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    assert_eq!(answer.json(), no_session());
}

/// E9: a client that only listens does not lose its session, nor one whose call takes long.
#[tokio::test]
async fn a_session_with_an_open_stream_does_not_go_idle() {
    let world = World::open();
    let identifier = world.initialize().await;
    let headers = [(SESSION, &*identifier)];
    let stream = world.start("GET", &headers, Full::from("")).await.unwrap();
    world.clock.advance(120 * MINUTE);
    assert_eq!(world.sessions.sweep(), 0);
    drop(stream);

    world.inner.falls_silent(true);
    let mut call = Box::pin(world.start("GET", &headers, Full::from("")));
    assert!(poll_once(&mut call).is_pending());
    world.clock.advance(120 * MINUTE);
    assert_eq!(world.sessions.sweep(), 0);
    drop(call);
    world.inner.falls_silent(false);

    world.clock.advance(29 * MINUTE);
    assert_eq!(world.send("GET", &headers, "").await.status, 200);
    world.clock.advance(30 * MINUTE);
    assert_eq!(world.send("GET", &headers, "").await.status, 400);
    assert_eq!(world.ended(), [EndReason::Idle]);
}
