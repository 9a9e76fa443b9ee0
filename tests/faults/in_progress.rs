//! The limits of requests and streams in progress per principal.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use parking_lot::Mutex;
use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, Http2, RecordedRequest, Request, ResponseBody, TIMEOUT,
    Upstream, call_message, modern_call_message,
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{mpsc::UnboundedSender, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

/// The senders of the bodies that an upstream has started.
type BodySenders = Arc<Mutex<Vec<UnboundedSender<Bytes>>>>;

/// Starts an upstream whose responses to the message `hang` and to GET do not end.
async fn hanging() -> (BodySenders, Upstream) {
    let open = BodySenders::default();
    let senders = Arc::clone(&open);
    let script = move |request: &RecordedRequest| -> Option<Response<ResponseBody>> {
        let content_type = match (request.method.as_str(), request.message_method().as_deref()) {
            ("GET", _) => "text/event-stream",
            (_, Some("hang")) => "application/json",
            _ => return None,
        };
        let (sender, body) = ChannelBody::new();
        senders.lock().push(sender);
        Some(Upstream::streaming(
            200,
            &[("content-type", content_type)],
            body,
        ))
    };
    (open, Upstream::scripted(script).await)
}

/// L9: a token with 150 hanging requests over HTTP/2 gets 429 beyond 100 of them. Another user and
/// `/healthz` are served meanwhile. When the requests end, the first user is served again.
#[tokio::test]
async fn hanging_requests_of_one_principal() {
    let (open, upstream) = hanging().await;
    let deployment = Deployment::builder().upstream(upstream).start().await;
    let alice = deployment.token().subject("alice").sign();
    let bob = deployment.token().subject("bob").sign();
    let session = deployment.open_session(&alice).await;
    let mut hanging = JoinSet::new();
    for _ in 0..2 {
        let client = Http2::connect(deployment.portcullis.address()).await;
        for number in 0..75 {
            let request = Http2::post(Deployment::ENDPOINT)
                .header("authorization", format!("Bearer {alice}"))
                .header("mcp-session-id", &session);
            let mut client = client.clone();
            hanging.spawn(async move {
                client
                    .send(request, call_message(number, "hang", &json!({})))
                    .await
                    .unwrap()
            });
        }
    }
    let mut rejected = Vec::new();
    for _ in 0..50 {
        let response = hanging.join_next().await.unwrap().unwrap();
        assert_eq!(response.status, 429, "{response:?}");
        assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
        rejected.push((response, "limit.in_flight"));
    }
    deployment.upstream.wait_for_requests(1 + 100).await;
    deployment.portcullis.assert_all_denied(&rejected).await;

    let echo =
        Request::post(Deployment::ENDPOINT, call_message(1, "echo", &json!({}))).session(&session);
    let other_client = deployment
        .token()
        .subject("alice")
        .client_id("another")
        .sign();
    for token in [&alice, &other_client] {
        let response = deployment.send(echo.clone().bearer(token)).await;
        assert_eq!(response.status, 429, "{response:?}");
    }
    deployment.open_session(&bob).await;
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );
    assert!(
        hanging.try_join_next().is_none(),
        "the others are in progress"
    );

    open.lock().clear();
    while let Some(ended) = hanging.join_next().await {
        assert_eq!(ended.unwrap().status, 200);
    }
    let response = deployment.send(echo.bearer(&alice)).await;
    assert_eq!(response.status, 200, "{response:?}");
}

/// L9: requests without a response count until their client disconnects.
#[tokio::test]
async fn requests_without_a_response() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let (counted, mut reached) = watch::channel(0);
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            streams.push(stream);
            counted.send_replace(streams.len());
        }
    });
    let deployment = Deployment::builder()
        .upstream_setting(format!("{{ http = \"http://{address}/\" }}"))
        .tables("[limits]\nin_flight_per_principal = 3")
        .start()
        .await;
    let bearer = format!("Bearer {}", deployment.good_token());
    let request = || {
        let request = Http2::post(Deployment::ENDPOINT).header("authorization", &bearer);
        let request = request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list");
        (request, modern_call_message(1, "tools/list", &json!({})))
    };
    for round in 1..=2 {
        let mut hanging = JoinSet::new();
        let client = Http2::connect(deployment.portcullis.address()).await;
        for _ in 0..5 {
            let (mut client, (request, body)) = (client.clone(), request());
            hanging.spawn(async move { client.send(request, body).await });
        }
        for _ in 0..2 {
            let response = hanging.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(response.status, 429, "{response:?}");
            assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
        }
        timeout(TIMEOUT, reached.wait_for(|count| *count == 3 * round))
            .await
            .unwrap()
            .unwrap();
        assert!(hanging.try_join_next().is_none());
        hanging.shutdown().await;
        drop(client);
        let all_gone = async {
            while deployment.portcullis.log().matches("client.gone").count() < 3 * round {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(TIMEOUT, all_gone).await.unwrap();
    }
}

/// L9: open event streams do not count as requests and have the limit of sessions.
#[tokio::test]
async fn streams_are_counted_separately() {
    let (open, upstream) = hanging().await;
    let deployment = Deployment::builder()
        .upstream(upstream)
        .tables("[limits]\nin_flight_per_principal = 1\n[session]\nmax_per_owner = 2")
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let listen = Request::new("GET", Deployment::ENDPOINT).header("Accept", "text/event-stream");
    let listen = listen.bearer(&token).session(&session);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = Connection::open(deployment.portcullis.address()).await;
        stream.write(&listen.to_bytes()).await;
        assert_eq!(stream.head().await.unwrap().status, 200);
        streams.push(stream);
    }
    let rejected = deployment.send(listen.clone()).await;
    assert_eq!(rejected.status, 429, "{rejected:?}");
    assert_eq!(rejected.header("retry-after"), Some("5"), "{rejected:?}");
    deployment
        .portcullis
        .assert_denied(&rejected, "limit.streams")
        .await;

    let echo = Request::post(Deployment::ENDPOINT, call_message(1, "echo", &json!({})))
        .bearer(&token)
        .session(&session);
    assert_eq!(deployment.send(echo.clone()).await.status, 200);

    let hang = Request::post(Deployment::ENDPOINT, call_message(2, "hang", &json!({})))
        .bearer(&token)
        .session(&session);
    let mut hanging = Connection::open(deployment.portcullis.address()).await;
    hanging.write(&hang.to_bytes()).await;
    assert_eq!(hanging.head().await.unwrap().status, 200);
    assert_eq!(deployment.send(echo).await.status, 429);

    open.lock().clear();
    for mut ended in streams.into_iter().chain([hanging]) {
        assert_eq!(ended.chunk().await, None);
    }
    let mut stream = Connection::open(deployment.portcullis.address()).await;
    stream.write(&listen.to_bytes()).await;
    assert_eq!(stream.head().await.unwrap().status, 200);
}
