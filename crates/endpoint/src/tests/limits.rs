//! Limits on the number of sessions, per owner and in total.

use http_body_util::{BodyExt as _, Full};
use portcullis_session::EndReason;

use super::fixture::*;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// E9: at the owner's limit, a new session replaces the least recently used one.
#[tokio::test]
async fn the_least_recently_used_session_ends() {
    let fixture = Fixture::guarded("");
    let sessions = [fixture.initialize().await, fixture.initialize().await];
    fixture.clock.advance(MINUTE);
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &sessions[0])], "")
            .await
            .status,
        200
    );
    let third = fixture.initialize().await;
    assert_eq!(fixture.ended(), [EndReason::Evicted]);
    for (identifier, status) in [(&sessions[0], 200), (&sessions[1], 404), (&third, 200)] {
        assert_eq!(
            fixture
                .send("GET", &[(SESSION, identifier)], "")
                .await
                .status,
            status
        );
    }
}

/// E9: if all sessions of the owner have an open stream or a request in progress, `initialize` is
/// rejected and not forwarded.
#[tokio::test]
async fn sessions_in_use_are_not_evicted() {
    let fixture = Fixture::guarded("");
    let sessions = [fixture.initialize().await, fixture.initialize().await];
    let headers = sessions
        .each_ref()
        .map(|identifier| [(SESSION, identifier.as_str())]);
    let stream = fixture
        .start("GET", &headers[0], Full::from(""))
        .await
        .unwrap();
    fixture.inner.set_silent(true);
    let mut delete = Box::pin(fixture.start("DELETE", &headers[1], Full::from("")));
    assert!(poll_once(&mut delete).is_pending());

    let seen = fixture.inner.seen().len();
    let response = fixture.post(&[], initialize()).await;
    assert_eq!(response.status, 503);
    assert_eq!(response.header("retry-after"), Some("30"));
    assert_eq!(response.json()["id"], 1);
    assert_eq!(fixture.decided(), (503, Some("session.owner_full")));
    assert_eq!(fixture.inner.seen().len(), seen);
    assert!(fixture.ended().is_empty());

    fixture.inner.set_silent(false);
    drop(stream);
    fixture.initialize().await;
    assert_eq!(fixture.ended(), [EndReason::Evicted]);
}

/// E9: a session is in use until the response to its `initialize` has ended.
#[tokio::test]
async fn an_opening_session_is_in_use() {
    let fixture = Fixture::guarded("");
    let start = async || {
        fixture.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
        fixture
            .start("POST", &JSON, Full::from(initialize().to_string()))
            .await
            .unwrap()
    };
    let first = start().await;
    let _second = start().await;
    assert_eq!(fixture.post(&[], initialize()).await.status, 503);
    drop(first);
    fixture.initialize().await;
    assert_eq!(fixture.ended(), [EndReason::Evicted]);
}

/// E9: if all other sessions are in use when the backend has answered, `initialize` is rejected
/// with its id, and no session ends.
#[tokio::test]
async fn a_session_over_the_limit_is_rejected_after_initialize() {
    let fixture = Fixture::guarded("");
    let sessions = [fixture.initialize().await, fixture.initialize().await];
    fixture.inner.set_silent(true);
    let mut opening = Box::pin(fixture.start("POST", &JSON, Full::from(initialize().to_string())));
    assert!(poll_once(&mut opening).is_pending());

    fixture.inner.set_silent(false);
    let headers = sessions
        .each_ref()
        .map(|identifier| [(SESSION, identifier.as_str())]);
    let _streams = [
        fixture
            .start("GET", &headers[0], Full::from(""))
            .await
            .unwrap(),
        fixture
            .start("GET", &headers[1], Full::from(""))
            .await
            .unwrap(),
    ];
    fixture.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
    let rejected = opening.await.unwrap();
    assert_eq!(rejected.status().as_u16(), 503);
    assert_eq!(rejected.headers().get(SESSION), None);
    assert_eq!(rejected.headers()["retry-after"], "30");

    let body = rejected.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["id"],
        1
    );
    assert_eq!(fixture.decided(), (503, Some("session.owner_full")));
    assert!(fixture.ended().is_empty());
    assert_eq!(fixture.sessions.len(), 2);
}

/// E9: an `initialize` that the backend rejects, or whose client disconnects, ends no session.
#[tokio::test]
async fn a_failed_initialize_ends_nothing() {
    let fixture = Fixture::guarded("");
    fixture.initialize().await;
    fixture.initialize().await;
    for status in [400, 404, 500] {
        fixture
            .inner
            .add_response(status, &[(SESSION, BACKEND)], "{}");
        assert_eq!(fixture.post(&[], initialize()).await.status, status);
    }
    fixture.inner.set_silent(true);
    let mut opening = Box::pin(fixture.start("POST", &JSON, Full::from(initialize().to_string())));
    assert!(poll_once(&mut opening).is_pending());
    drop(opening);
    assert!(fixture.ended().is_empty());
    assert_eq!(fixture.sessions.len(), 2);
}

/// E2: capacity is reserved until the backend has answered, and released if the client disconnects.
#[tokio::test]
async fn capacity_is_reserved_during_initialize() {
    let fixture = Fixture::guarded("");
    let start = || Box::pin(fixture.start("POST", &JSON, Full::from(initialize().to_string())));
    fixture.inner.set_silent(true);
    let mut first = start();
    let mut second = start();
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut second).is_pending());
    assert_eq!(fixture.post(&[], initialize()).await.status, 503);
    drop(first);
    fixture.inner.set_silent(false);
    fixture.initialize().await;
    drop(second);
}
