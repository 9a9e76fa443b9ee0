//! A shutdown while clients listen and wait.

use std::time::Duration;

use portcullis_scenarios::{
    Connection, Deployment, EventStreams, Http2, Portcullis, Request, Signal, Upstream, call, modern_request,
};
use serde_json::{Value, json};
use tokio::time::Instant;

fn get(token: &str, session: &str) -> Request {
    Request::new("GET", Deployment::ENDPOINT).header("Accept", "text/event-stream").bearer(token).session(session)
}

fn listen(token: &str) -> Request {
    modern_request(Deployment::ENDPOINT, "subscriptions/listen", &json!({ "notifications": {} })).bearer(token)
}

fn slow_call(token: &str, session: &str) -> Request {
    let body = call(2, "tools/call", &json!({ "name": "slow" }));
    Request::post(Deployment::ENDPOINT, body).bearer(token).session(session)
}

async fn ends_within(portcullis: Portcullis, limit: Duration) -> String {
    let started = Instant::now();
    let finished = portcullis.ended().await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
    finished.stderr
}

/// L3: streams on which clients only listen end at once, with and without authentication: that of GET, and that of a modern
/// listener, which receives its result.
#[tokio::test]
async fn idle_streams_end_at_once() {
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
        let mut idle = streams.open(&deployment, get(&token, &session)).await;
        let mut listener = streams.open(&deployment, listen(&token)).await;
        deployment.portcullis.signal(Signal::TERM);
        let result = listener.connection.chunk().await.unwrap();
        let result = String::from_utf8(result).unwrap();
        let data = result.strip_prefix("event: message\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["result"]["resultType"], "complete", "{data}");
        assert_eq!(data["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], data["id"], "{data}");
        listener.ended().await;
        idle.ended().await;
        for connection in [&mut idle.connection, &mut listener.connection] {
            connection.assert_closed().await;
        }
        let Deployment { portcullis, .. } = deployment;
        let log = ends_within(portcullis, Duration::from_secs(3)).await;
        assert!(log.contains("stream.shutdown") && !log.contains("cancelling the requests"), "{log}");
    }
}

/// L3: an event that has begun is completed, and a stream that answers a request lasts until the response has come.
#[tokio::test]
async fn busy_streams_are_completed() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder().upstream(streams.upstream().await).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut amid = streams.open(&deployment, get(&token, &session)).await;
    let mut answer = streams.open(&deployment, slow_call(&token, &session)).await;
    amid.pass("data: {\"begun\"").await;
    deployment.portcullis.signal(Signal::TERM);
    deployment.portcullis.logged("shutting down", |_| true).await;
    amid.send(":true}\n\n");
    assert_eq!(amid.connection.chunk().await.as_deref(), Some(&b":true}\n\n"[..]));
    amid.ended().await;
    answer.pass("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n").await;
    let (mut connection, events) = (answer.connection, answer.events);
    drop(events);
    assert_eq!(connection.chunk().await, None);
    let Deployment { portcullis, .. } = deployment;
    ends_within(portcullis, Duration::from_secs(3)).await;
}

/// L3: an event that is never completed holds up the shutdown for `shutdown_timeout` at most.
#[tokio::test]
async fn an_event_that_is_not_completed() {
    let streams = EventStreams::default();
    let deployment =
        Deployment::builder().upstream(streams.upstream().await).top("shutdown_timeout = \"1s\"").start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut amid = streams.open(&deployment, get(&token, &session)).await;
    amid.pass("data: {\"begun\"").await;
    deployment.portcullis.signal(Signal::TERM);
    let Deployment { portcullis, .. } = deployment;
    let log = ends_within(portcullis, Duration::from_secs(6)).await;
    assert!(log.contains("cancelling the requests"), "{log}");
}

/// `/readyz` answers 503 during the shutdown. With `shutdown_delay`, new connections are still accepted, so that load balancers
/// notice, and everything else is served as before.
#[tokio::test]
async fn readiness() {
    let streams = EventStreams::default();
    let deployment =
        Deployment::builder().upstream(streams.upstream().await).top("shutdown_delay = \"2s\"").start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut idle = streams.open(&deployment, get(&token, &session)).await;
    let ready = async || deployment.send(Request::new("GET", "/readyz")).await;
    let before = ready().await;
    assert_eq!((before.status, &before.json()["draining"]), (200, &json!(false)), "{before:?}");
    deployment.portcullis.signal(Signal::TERM);
    deployment.portcullis.logged("shutdown begins after the delay", |_| true).await;
    let draining = ready().await;
    assert_eq!(draining.status, 503, "{draining:?}");
    let report = draining.json();
    assert_eq!((&report["ready"], &report["draining"]), (&json!(false), &json!(true)), "{report}");
    assert_eq!(deployment.send(Request::new("GET", "/healthz")).await.status, 200);
    deployment.open_session(&token).await;
    idle.assert_open().await;
    idle.ended().await;
    let Deployment { portcullis, .. } = deployment;
    ends_within(portcullis, Duration::from_secs(3)).await;
}

/// An HTTP/1.1 client that sends a request on an idle connection just as the shutdown begins receives the response, and is
/// asked to close; so is one whose request is in progress.
#[tokio::test]
async fn connections_are_asked_to_close() {
    let (answering, body) = portcullis_scenarios::Trickle::new();
    let body = std::sync::Mutex::new(Some(body));
    let script = move |request: &portcullis_scenarios::Recorded| {
        (request.message_method().as_deref() == Some("tools/call")).then(|| {
            Upstream::trickle(200, &[("content-type", "application/json")], body.lock().unwrap().take().unwrap())
        })
    };
    let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let address = deployment.portcullis.address();
    let mut idle = Connection::open(address).await;
    assert_eq!(idle.send(&Request::new("GET", "/healthz")).await.header("connection"), None);
    let mut http2 = Http2::connect(address).await;
    assert_eq!(http2.send(Http2::request("GET", "/healthz"), "").await.unwrap().status, 200);
    let (mut other, http2_token, http2_session) = (http2.clone(), token.clone(), session.clone());
    let in_progress = tokio::spawn(async move {
        let request = Http2::post(Deployment::ENDPOINT)
            .header("authorization", format!("Bearer {http2_token}"))
            .header("mcp-session-id", http2_session);
        other.send(request, call(2, "tools/call", &json!({ "name": "slow" }))).await
    });
    deployment.upstream.reached(2).await;

    deployment.portcullis.signal(Signal::TERM);
    deployment.portcullis.logged("shutting down", |_| true).await;
    let last = idle.send(&Request::new("GET", "/readyz")).await;
    assert_eq!((last.status, last.header("connection")), (503, Some("close")), "{last:?}");
    idle.assert_closed().await;
    // The stream in progress is completed after GOAWAY, and no further one begins.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(http2.send(Http2::request("GET", "/healthz"), "").await.is_err());
    answering.send("{}".into()).unwrap();
    drop(answering);
    let answer = in_progress.await.unwrap().unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"), "{answer:?}");
    let Deployment { portcullis, .. } = deployment;
    ends_within(portcullis, Duration::from_secs(3)).await;
}
