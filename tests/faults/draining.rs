//! Shutdown with open streams and requests in progress.

use std::time::Duration;

use portcullis_scenarios::{
    Connection, Deployment, EventStreams, Http2, Portcullis, Request, Signal, TIMEOUT, Upstream,
    call_message, modern_request,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::shutdown::END_TIME;

fn listen(token: &str) -> Request {
    modern_request(
        Deployment::ENDPOINT,
        "subscriptions/listen",
        &json!({ "notifications": {} }),
    )
    .bearer(token)
}

fn slow_call(token: &str, session: &str) -> Request {
    let body = call_message(2, "tools/call", &json!({ "name": "slow" }));
    Request::post(Deployment::ENDPOINT, body)
        .bearer(token)
        .session(session)
}

async fn assert_ends_soon(portcullis: Portcullis) -> String {
    let started = Instant::now();
    let finished = portcullis.wait().await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(started.elapsed() < END_TIME, "{:?}", started.elapsed());
    finished.stderr
}

/// L3: streams of GET and of `subscriptions/listen` end immediately, with and without
/// authorization. A modern listener receives its result.
#[tokio::test]
async fn idle_streams_end_immediately() {
    for lines in [Deployment::SCOPED, "auth = \"none\""] {
        let streams = EventStreams::default();
        let deployment = Deployment::builder()
            .upstream(streams.upstream().await)
            .resource(lines)
            .top("shutdown_timeout = \"60s\"")
            .start()
            .await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let mut idle = streams.listen(&deployment, &token, &session).await;
        let mut listener = streams.open(&deployment, listen(&token)).await;
        deployment.portcullis.signal(Signal::TERM);
        let result = listener.connection.chunk().await.unwrap();
        let result = String::from_utf8(result).unwrap();
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
        listener.assert_ended().await;
        idle.assert_ended().await;
        for connection in [&mut idle.connection, &mut listener.connection] {
            connection.assert_closed().await;
        }
        let Deployment { portcullis, .. } = deployment;
        let log = assert_ends_soon(portcullis).await;
        assert!(log.contains("stream.shutdown"), "{log}");
        assert!(!log.contains("cancelling the requests"), "{log}");
    }
}

/// L3: an incomplete event is completed before its stream ends. The stream of a request lasts until
/// its response.
#[tokio::test]
async fn busy_streams_are_completed() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut incomplete = streams.listen(&deployment, &token, &session).await;
    let mut response = streams.open(&deployment, slow_call(&token, &session)).await;
    incomplete.assert_forwarded("data: {\"begun\"").await;

    deployment.portcullis.signal(Signal::TERM);
    deployment
        .portcullis
        .logged("shutting down", |_| true)
        .await;
    incomplete.send(":true}\n\n");
    assert_eq!(
        incomplete.connection.chunk().await.as_deref(),
        Some(&b":true}\n\n"[..])
    );
    incomplete.assert_ended().await;
    response
        .assert_forwarded("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n")
        .await;

    drop(response.events);
    assert_eq!(response.connection.chunk().await, None);

    let Deployment { portcullis, .. } = deployment;
    assert_ends_soon(portcullis).await;
}

/// L3: an event that is never completed delays the shutdown by at most `shutdown_timeout`.
#[tokio::test]
async fn an_event_that_is_not_completed() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .top("shutdown_timeout = \"1s\"")
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut incomplete = streams.listen(&deployment, &token, &session).await;
    incomplete.assert_forwarded("data: {\"begun\"").await;
    deployment.portcullis.signal(Signal::TERM);
    let Deployment { portcullis, .. } = deployment;
    let log = assert_ends_soon(portcullis).await;
    assert!(log.contains("cancelling the requests"), "{log}");
}

/// `/readyz` returns 503 during the shutdown. During `shutdown_delay`, new connections are accepted
/// and other requests are served, so that load balancers can detect the shutdown.
#[tokio::test]
async fn readiness() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .upstream(streams.upstream().await)
        .top("shutdown_delay = \"6s\"")
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut idle = streams.listen(&deployment, &token, &session).await;
    let ready = async || deployment.send(Request::new("GET", "/readyz")).await;
    let before = ready().await;
    assert_eq!(before.status, 200, "{before:?}");
    assert_eq!(before.json()["draining"], false, "{before:?}");

    deployment.portcullis.signal(Signal::TERM);
    deployment
        .portcullis
        .logged("shutdown begins after the delay", |_| true)
        .await;
    let draining = ready().await;
    assert_eq!(draining.status, 503, "{draining:?}");

    let report = draining.json();
    assert_eq!(report["ready"], false, "{report}");
    assert_eq!(report["draining"], true, "{report}");
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );

    deployment.open_session(&token).await;
    idle.assert_open().await;
    idle.assert_ended().await;
    let Deployment { portcullis, .. } = deployment;
    assert_ends_soon(portcullis).await;
}

/// A request on an idle HTTP/1.1 connection gets a response with `Connection: close` during the
/// shutdown. An HTTP/2 request in progress is completed after GOAWAY.
#[tokio::test]
async fn connections_close() {
    let (sender, body) = portcullis_scenarios::ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script = move |request: &portcullis_scenarios::RecordedRequest| {
        (request.message_method().as_deref() == Some("tools/call")).then(|| {
            Upstream::streaming(
                200,
                &[("content-type", "application/json")],
                body.lock().take().unwrap(),
            )
        })
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let address = deployment.portcullis.address();
    let mut idle = Connection::open(address).await;
    assert_eq!(
        idle.send(&Request::new("GET", "/healthz"))
            .await
            .header("connection"),
        None
    );

    let mut http2 = Http2::connect(address).await;
    assert_eq!(
        http2
            .send(Http2::request("GET", "/healthz"), "")
            .await
            .unwrap()
            .status,
        200
    );
    let mut other = http2.clone();
    let http2_token = token.clone();
    let http2_session = session.clone();
    let in_progress = tokio::spawn(async move {
        let request = Http2::post(Deployment::ENDPOINT)
            .header("authorization", format!("Bearer {http2_token}"))
            .header("mcp-session-id", http2_session);
        other
            .send(
                request,
                call_message(2, "tools/call", &json!({ "name": "slow" })),
            )
            .await
    });
    deployment.upstream.wait_for_requests(2).await;

    deployment.portcullis.signal(Signal::TERM);
    // An idle connection closes 250 ms after the beginning, so that nothing else is waited for.
    let last = loop {
        let response = idle.send(&Request::new("GET", "/readyz")).await;
        if response.header("connection").is_some() {
            break response;
        }
    };
    assert_eq!(last.status, 503, "{last:?}");
    assert_eq!(last.header("connection"), Some("close"), "{last:?}");
    idle.assert_closed().await;

    // After GOAWAY, no further HTTP/2 request is accepted.
    let refused = async {
        while http2
            .send(Http2::request("GET", "/healthz"), "")
            .await
            .is_ok()
        {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, refused).await.unwrap();
    sender.send("{}".into()).unwrap();
    drop(sender);
    let response = in_progress.await.unwrap().unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.text().as_str(), "{}", "{response:?}");

    let Deployment { portcullis, .. } = deployment;
    assert_ends_soon(portcullis).await;
}
