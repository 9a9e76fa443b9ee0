//! Response bodies are streamed; incomplete ones stay incomplete.

use bytes::Bytes;
use http::Response;
use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, RawUpstream, RecordedRequest, Request, ResponseBody,
    Upstream, call_message, modern_request,
};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

/// Returns an upstream script whose response to `tools/call` or GET has a body that the test sends
/// through the sender.
fn script() -> (
    UnboundedSender<Bytes>,
    impl Fn(&RecordedRequest) -> Option<Response<ResponseBody>> + Send + Sync + 'static,
) {
    let (sender, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script = move |request: &RecordedRequest| {
        if request.method != http::Method::GET
            && request.message_method().as_deref() != Some("tools/call")
        {
            return None;
        }
        let body = body.lock().take()?;
        Some(Upstream::streaming(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("cache-control", "no-cache"),
            ],
            body,
        ))
    };
    (sender, script)
}

/// Asserts that each event of a response arrives before the next one is sent.
async fn assert_streamed(deployment: Deployment, request: Request, events: UnboundedSender<Bytes>) {
    let mut connection = Connection::open(deployment.portcullis.address()).await;
    connection.write(&request.to_bytes()).await;
    let head = connection.head().await.unwrap();
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(
        head.header("content-type"),
        Some("text/event-stream"),
        "{head:?}"
    );
    assert_eq!(head.header("x-accel-buffering"), Some("no"), "{head:?}");

    for number in 0..3 {
        let event = format!("data: {{\"number\":{number}}}\n\n");
        events.send(event.clone().into()).unwrap();
        assert_eq!(connection.chunk().await.as_deref(), Some(event.as_bytes()));
    }
    drop(events);
    assert_eq!(connection.chunk().await, None, "the end is forwarded");
}

/// L1: the response to a POST over TCP is streamed.
#[tokio::test]
async fn a_post_over_tcp() {
    let (events, script) = script();
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let request = Request::post(
        Deployment::ENDPOINT,
        call_message(2, "tools/call", &json!({ "name": "slow" })),
    )
    .bearer(&token)
    .session(&session);
    assert_streamed(deployment, request, events).await;
}

/// L1: the response to a GET over a Unix socket is streamed.
#[tokio::test]
async fn a_get_over_a_unix_socket() {
    let (events, script) = script();
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted_on_unix(script))
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    assert_eq!(deployment.upstream.last().target, "/backend");
    let request = Request::listen(Deployment::ENDPOINT, &token, &session);
    assert_streamed(deployment, request, events).await;
}

/// L1: if an upstream fails within a body, the response ends as incomplete.
#[tokio::test]
async fn an_incomplete_response_of_the_upstream() {
    let raw = RawUpstream::start(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"half\":",
    )
    .await;
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .start()
        .await;
    let token = deployment.good_token();
    let mut connection = Connection::open(deployment.portcullis.address()).await;
    let list = modern_request(Deployment::ENDPOINT, "tools/list", &json!({}));
    connection.write(&list.bearer(&token).to_bytes()).await;

    // Whether the head is sent before the failure is detected depends on timing. The response is
    // never complete.
    if let Some(head) = connection.head().await {
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-length"), Some("100"), "{head:?}");
        assert!(connection.rest().await.len() < 100);
    }
}

/// E2, L1: an `initialize` with an incomplete response opens no session and is reported as a
/// failure of the upstream.
#[tokio::test]
async fn an_incomplete_initialize_response() {
    let raw = RawUpstream::start(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: theirs\r\nContent-Length: 100\r\n\r\n{\"half\":",
    )
    .await;
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .tables("[session]\nmax_total = 1")
        .start()
        .await;
    let token = deployment.good_token();
    for _ in 0..2 {
        let response = deployment.try_token(&token).await;
        response.assert_rpc_error(502, -32603);
        assert_eq!(response.json()["id"], 1, "{response:?}");
        assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "upstream.body_broken")
            .await;
    }
}
