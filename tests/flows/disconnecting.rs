//! Clients that disconnect while their request is in progress.

use std::time::Duration;

use portcullis_scenarios::{
    Administration, Connection, Deployment, EventStreams, RawRequest, RawUpstream, Request,
    TIMEOUT, call_message, modern_request,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Longer than it takes to end the request of a disconnected client at the upstream.
const ENDING_TIME: Duration = Duration::from_millis(1500);

fn legacy(token: &str, session: &str) -> Request {
    let body = call_message(2, "tools/call", &json!({ "name": "slow" }));
    Request::post(Deployment::ENDPOINT, body)
        .bearer(token)
        .session(session)
}

fn modern(token: &str, method: &str, params: &Value) -> Request {
    let request = modern_request(Deployment::ENDPOINT, method, params).bearer(token);
    if method == "tools/call" {
        request.header("Mcp-Name", "slow")
    } else {
        request
    }
}

/// L4: if the client disconnects before the response, a modern request is cancelled at the
/// upstream, and a legacy one continues.
#[tokio::test]
async fn before_the_response() {
    let raw = RawUpstream::scripted(|request: &RawRequest| {
        request.body.contains("\"initialize\"").then(|| {
            b"HTTP/1.1 200 OK\r\nmcp-session-id: theirs\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
                .to_vec()
        })
    })
    .await;
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client.write(&legacy(&token, &session).to_bytes()).await;
    raw.wait_for_requests(2).await;

    // The connection of `initialize` is either idle or used again, depending on the worker.
    let with_legacy = raw.open();
    drop(client);
    let is_noticed = |line: &Value| line["deny.code"] == "client.gone";
    deployment
        .portcullis
        .logged("client.gone", is_noticed)
        .await;
    sleep(ENDING_TIME).await;
    assert_eq!(raw.open(), with_legacy, "the legacy request has ended");

    let mut client = Connection::open(deployment.portcullis.address()).await;
    client
        .write(&modern(&token, "tools/call", &json!({ "name": "slow" })).to_bytes())
        .await;
    raw.wait_for_requests(3).await;
    let with_modern = raw.open();
    drop(client);
    raw.wait_for_open(with_modern - 1).await;
}

/// L4: the same applies during the response. In every revision, a stream of server messages ends
/// with its client.
#[tokio::test]
async fn during_the_response() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let continued = streams.open(&deployment, legacy(&token, &session)).await;
    let ending = [
        streams
            .open(
                &deployment,
                modern(&token, "tools/call", &json!({ "name": "slow" })),
            )
            .await,
        streams
            .open(
                &deployment,
                modern(
                    &token,
                    "subscriptions/listen",
                    &json!({ "notifications": {} }),
                ),
            )
            .await,
        streams.listen(&deployment, &token, &session).await,
    ];
    drop(continued.connection);
    for stream in ending {
        drop(stream.connection);
        timeout(TIMEOUT, stream.events.closed()).await.unwrap();
    }
    sleep(ENDING_TIME).await;
    assert!(
        !continued.events.is_closed(),
        "the legacy request has ended"
    );

    // The upstream completes its response.
    continued
        .events
        .send("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n".into())
        .unwrap();
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );
}

/// L4: a continued legacy request ends before a request that resumes its stream is forwarded,
/// because a stream has one reader. It also ends with the DELETE of its session.
#[tokio::test]
async fn until_the_stream_is_resumed() {
    let streams = EventStreams::default();
    let administration = Administration::default();
    let builder = Deployment::builder().upstream(streams.upstream().await);
    let deployment = administration.of(builder, "").start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let other = deployment.open_session(&token).await;
    let mut continued = streams.open(&deployment, legacy(&token, &session)).await;
    continued.assert_forwarded("id: 7\ndata: {}\n\n").await;

    let of_other = streams.open(&deployment, legacy(&token, &other)).await;
    administration
        .wait_for_metric("portcullis_streams", 2)
        .await;
    drop((continued.connection, of_other.connection));
    administration
        .wait_for_metric("portcullis_streams", 0)
        .await;
    let plain = streams.listen(&deployment, &token, &session).await;
    assert!(
        !continued.events.is_closed(),
        "a GET without `Last-Event-ID` resumes no stream"
    );

    let _resumed = streams
        .open(
            &deployment,
            Request::listen(Deployment::ENDPOINT, &token, &session).header("Last-Event-ID", "7"),
        )
        .await;
    timeout(TIMEOUT, continued.events.closed()).await.unwrap();
    assert!(!of_other.events.is_closed());
    assert!(!plain.events.is_closed());

    let delete = Request::delete(Deployment::ENDPOINT, &token, &other);
    assert_eq!(deployment.send(delete).await.status, 200);
    timeout(TIMEOUT, of_other.events.closed()).await.unwrap();
}
