//! Event streams on which clients listen: keep-alive comments, and how the streams end.

use std::time::Duration;

use portcullis_scenarios::{Deployment, EventStreams, Request, call_message, modern_request};
use serde_json::{Value, json};
use tokio::time::Instant;

fn listen(token: &str) -> Request {
    modern_request(
        Deployment::ENDPOINT,
        "subscriptions/listen",
        &json!({ "notifications": {} }),
    )
    .bearer(token)
}

/// The streams of an ended session end within 0.5 s. The rest is a margin for a busy machine.
pub(crate) const END_TIME: Duration = Duration::from_secs(5);

/// E9: DELETE ends the streams of its session soon, to the client and at the upstream. Other streams
/// continue.
#[tokio::test]
async fn until_the_session_is_deleted() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let other = deployment.open_session(&token).await;
    let mut listening = streams.listen(&deployment, &token, &session).await;
    let body = call_message(2, "tools/call", &json!({ "name": "slow" }));
    let slow = Request::post(Deployment::ENDPOINT, body)
        .bearer(&token)
        .session(&session);
    let mut responding = streams.open(&deployment, slow).await;
    let mut of_other = streams.listen(&deployment, &token, &other).await;
    let mut modern = streams.open(&deployment, listen(&token)).await;
    let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
    assert_eq!(deployment.send(delete).await.status, 200);

    let deleted = Instant::now();
    listening.assert_ended().await;
    responding.assert_ended().await;
    assert!(deleted.elapsed() < END_TIME, "{:?}", deleted.elapsed());

    let line = deployment
        .portcullis
        .logged("stream.session_ended", |_| true)
        .await;
    assert_eq!(line["session"].as_str().map(str::len), Some(16), "{line}");
    of_other.assert_open().await;
    modern.assert_open().await;
}

/// L3: a modern listener receives the result of its request before its stream ends with its token.
#[tokio::test]
async fn until_the_token_expires() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .issuer("leeway = \"0s\"")
        .upstream(streams.upstream().await)
        .start()
        .await;
    let mut listener = streams
        .open(
            &deployment,
            listen(&deployment.token().expires_in(6).sign()),
        )
        .await;
    let result = String::from_utf8(listener.connection.chunk().await.unwrap()).unwrap();
    let data = result
        .strip_prefix("event: message\ndata: ")
        .unwrap()
        .strip_suffix("\n\n")
        .unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["result"]["resultType"], "complete", "{data}");
    assert_eq!(
        data["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], data["id"],
        "{data}"
    );
    assert!(!data["id"].is_null(), "{data}");
    listener.assert_ended().await;
}

/// L3: a comment is sent after 15 s of silence, and never within an event.
#[tokio::test]
async fn while_there_are_no_events() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut incomplete = streams.listen(&deployment, &token, &session).await;
    incomplete.assert_forwarded("data: {\"begun\"").await;

    // Before the last event, so that the client does not see a shorter silence than the server.
    let since = Instant::now();
    let mut silent = streams.listen(&deployment, &token, &session).await;
    assert_eq!(
        silent.connection.chunk().await.as_deref(),
        Some(&b":\n\n"[..])
    );
    let silence = since.elapsed();
    assert!(silence >= Duration::from_millis(14_900), "{silence:?}");
    silent.assert_open().await;
    incomplete.assert_forwarded(":true}\n\n").await;
}
