//! The end of sessions: DELETE, a 404 of the backend, and idle time.

use http_body_util::Full;
use portcullis_session::EndReason;
use serde_json::json;

use super::fixture::*;

/// E9: DELETE is forwarded, and ends the session for every response of the backend. The client gets
/// 204 if the backend does not confirm it.
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
        let fixture = Fixture::open();
        let identifier = fixture.initialize().await;
        fixture
            .inner
            .add_response(backend, &[(SESSION, BACKEND)], "");
        let response = fixture.send("DELETE", &[(SESSION, &identifier)], "").await;
        assert_eq!(response.status, client);
        assert_eq!(response.header(SESSION), None);
        assert_eq!(fixture.inner.last().method.as_str(), "DELETE");
        assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));
        assert_eq!(fixture.ended(), [reason]);
        assert_eq!(
            fixture
                .send("DELETE", &[(SESSION, &identifier)], "")
                .await
                .status,
            400
        );
    }
}

/// E9: a DELETE ends the session even if the client does not wait for the response.
#[tokio::test]
async fn an_abandoned_delete_ends_the_session() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.inner.set_silent(true);
    let headers = [(SESSION, &*identifier)];
    let mut delete = Box::pin(fixture.start("DELETE", &headers, Full::from("")));
    assert!(poll_once(&mut delete).is_pending());
    drop(delete);
    assert_eq!(fixture.ended(), [EndReason::DeleteFailed]);
}

/// E9: the backend's 404 to its own identifier ends the session; other failures do not.
#[tokio::test]
async fn a_backend_that_forgot_the_session_ends_it() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    for status in [400, 401, 405, 500, 503] {
        fixture.inner.add_response(status, &[], "");
        let response = fixture.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(response.status, status);
    }
    assert!(fixture.ended().is_empty());

    fixture.inner.add_response(404, &[(SESSION, BACKEND)], "");
    let response = fixture
        .post(&[(SESSION, &identifier)], request("ping", json!({})))
        .await;
    assert_eq!(response.status, 404);
    assert_eq!(response.header(SESSION), None);
    assert_eq!(fixture.ended(), [EndReason::TransportClosed]);

    let response = fixture
        .post(&[(SESSION, &identifier)], request("ping", json!({})))
        .await;
    assert_eq!(
        response.error(),
        (404, -32000),
        "the owner can open a new session"
    );
}

/// E9: an open stream or a long call keeps the session.
#[tokio::test]
async fn a_session_with_an_open_stream_does_not_go_idle() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let headers = [(SESSION, &*identifier)];
    let stream = fixture
        .start("GET", &headers, Full::from(""))
        .await
        .unwrap();
    fixture.clock.advance(120 * MINUTE);
    assert_eq!(fixture.sessions.sweep(), 0);

    drop(stream);

    fixture.inner.set_silent(true);
    let mut call = Box::pin(fixture.start("GET", &headers, Full::from("")));
    assert!(poll_once(&mut call).is_pending());
    fixture.clock.advance(120 * MINUTE);
    assert_eq!(fixture.sessions.sweep(), 0);

    drop(call);
    fixture.inner.set_silent(false);

    fixture.clock.advance(29 * MINUTE);
    assert_eq!(fixture.send("GET", &headers, "").await.status, 200);
    fixture.clock.advance(30 * MINUTE);
    assert_eq!(fixture.send("GET", &headers, "").await.status, 404);
    assert_eq!(fixture.ended(), [EndReason::Idle]);
}
