//! Clients that read nothing or little of a response do not block others.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use portcullis_scenarios::{Deployment, EventStreams, Http2, Request};
use serde_json::Value;
use tokio::{
    net::TcpStream,
    sync::mpsc::UnboundedSender,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// Opens an HTTP/2 connection that grants each stream a window of this size. It acknowledges pings
/// and settings.
async fn with_window(deployment: &Deployment, window: u32) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(deployment.portcullis.address())
        .await
        .unwrap();
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn send(
    sender: &mut SendRequest<Empty<Bytes>>,
    request: http::request::Builder,
) -> http::Response<Incoming> {
    sender
        .send_request(request.body(Empty::new()).unwrap())
        .await
        .unwrap()
}

/// L9: connections with unread responses do not block new connections.
#[tokio::test]
async fn windows_of_zero_at_the_limit() {
    let deployment = Deployment::builder()
        .tables("[limits]\nmax_connections = 20")
        .start()
        .await;
    let mut unread = Vec::new();
    for _ in 0..20 {
        let mut sender = with_window(&deployment, 0).await;
        let response = send(&mut sender, Http2::request("GET", "/healthz")).await;
        unread.push((sender, response));
    }
    let mut waiting = JoinSet::new();
    for _ in 0..5 {
        let mut sender = with_window(&deployment, 0).await;
        let request = Http2::request("GET", "/healthz")
            .body(Empty::new())
            .unwrap();
        waiting.spawn(async move { sender.send_request(request).await });
    }
    let started = Instant::now();
    for _ in 0..3 {
        let response = timeout(
            Duration::from_secs(15),
            deployment.send(Request::new("GET", "/healthz")),
        )
        .await;
        assert_eq!(response.expect("a response").status, 200);
    }
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

/// An open event stream.
struct Listening {
    deployment: Deployment,
    /// The client's connection, which closes when this is dropped.
    _client: SendRequest<Empty<Bytes>>,
    response: http::Response<Incoming>,
    /// The sender of the upstream's events.
    events: UnboundedSender<Bytes>,
}

/// Opens an event stream with a window of this size and a token that expires after this number of
/// seconds.
async fn listening(limits: &str, window: u32, token_seconds: i64) -> Listening {
    let streams = EventStreams::default();
    let upstream = streams.listening_upstream().await;
    let deployment = Deployment::builder()
        .issuer("leeway = \"0s\"")
        .upstream(upstream)
        .tables(limits)
        .start()
        .await;
    let token = deployment.token().expires_in(token_seconds).sign();
    let session = deployment.open_session(&token).await;
    let mut client = with_window(&deployment, window).await;
    let request = Http2::request("GET", Deployment::ENDPOINT)
        .header("accept", "text/event-stream")
        .header("authorization", format!("Bearer {token}"))
        .header("mcp-session-id", session);
    let response = send(&mut client, request).await;
    assert_eq!(response.status(), 200);
    Listening {
        deployment,
        _client: client,
        response,
        events: streams.take(),
    }
}

/// L3, L9: a stream with an expired token ends at its upstream even if its client reads nothing.
#[tokio::test]
async fn an_event_stream_without_a_window() {
    let stream = listening("[limits]\nbody_pause = \"6s\"", 0, 4).await;
    stream.events.send(": event\n\n".into()).unwrap();
    let is_expired = |line: &Value| line["stream.code"] == "stream.token_expired";
    stream
        .deployment
        .portcullis
        .logged("stream.token_expired", is_expired)
        .await;
    timeout(Duration::from_secs(15), stream.events.closed())
        .await
        .expect("the upstream's stream ends");
}

/// A client that reads slowly gets everything, and a stream without events is not closed.
#[tokio::test]
async fn a_slow_client_is_served() {
    const LENGTH: usize = 256 << 10;
    let stream = listening("[limits]\nbody_pause = \"2s\"", 16 << 10, 300).await;
    // A connection that counts as blocked is closed within 5 s.
    sleep(Duration::from_millis(5500)).await;
    let mut event = vec![b'x'; LENGTH];
    event[..6].copy_from_slice(b"data: ");
    event[LENGTH - 2..].copy_from_slice(b"\n\n");
    stream.events.send(event.into()).unwrap();
    let mut body = stream.response.into_body();
    let mut received = 0;
    let started = Instant::now();
    while received < LENGTH {
        sleep(Duration::from_millis(300)).await;
        let frame = body
            .frame()
            .await
            .expect("more")
            .expect("the connection stays open");
        received += frame.into_data().unwrap().len();
    }
    assert!(
        started.elapsed() > Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}
