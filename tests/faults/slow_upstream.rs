//! Upstreams that respond slowly or never: the time and the number of waiting requests are bounded.

use std::time::{Duration, Instant};

use portcullis_scenarios::{
    Answer, Connection, Deployment, Http2, INITIALIZE, RawRequest, RawUpstream, Request, Trickle, Upstream,
    modern_call, modern_request,
};
use serde_json::json;

/// Starts an upstream that responds to every request except hanging ones.
async fn upstream() -> RawUpstream {
    RawUpstream::scripted(|request: &RawRequest| {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        (!request.head.contains("x-hang")).then(|| format!("{head}{body}").into())
    })
    .await
}

fn good(token: &str) -> Request {
    modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(token)
}

fn hanging(token: &str) -> Request {
    good(token).header("X-Hang", "1")
}

fn assert_timed_out(answer: &Answer) {
    answer.assert_rpc_error(504, -32603);
    assert!(answer.text().contains("did not answer in time"), "{answer:?}");
}

/// L9: if the head of a response does not arrive in time, the client gets 504 and the upstream connection is closed, on
/// an idle connection as on a new one. Other requests are served meanwhile.
#[tokio::test]
async fn no_head_in_time() {
    let raw = upstream().await;
    let settings = format!("{}\nupstream_head_timeout = \"1s\"", Deployment::SCOPED);
    let deployment = Deployment::builder().upstream_setting(raw.setting()).resource(settings).start().await;
    let token = deployment.good_token();
    for _ in 0..2 {
        let mut client = Connection::open(deployment.portcullis.address()).await;
        assert_eq!(client.send(&good(&token)).await.status, 200);
        let started = Instant::now();
        client.write(&hanging(&token).to_bytes()).await;
        assert_eq!(deployment.send(good(&token)).await.status, 200);
        let answer = client.answer().await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
        assert_timed_out(&answer);
        deployment.portcullis.assert_denied(&answer, "upstream.head_timeout").await;
        assert_eq!(client.send(&good(&token)).await.status, 200, "the client's connection stays open");
    }
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client.write(&hanging(&token).to_bytes()).await;
    let before = raw.open();
    assert_timed_out(&client.answer().await.unwrap());
    raw.until_open(before.saturating_sub(1)).await;
}

/// L9: a stream whose head has arrived can pause for longer than that.
#[tokio::test]
async fn streams_can_pause() {
    let (events, body) = Trickle::new();
    let body = std::sync::Mutex::new(Some(body));
    let script = move |request: &portcullis_scenarios::Recorded| {
        let body = (request.method == http::Method::GET).then(|| body.lock().unwrap().take())??;
        Some(Upstream::trickle(200, &[("content-type", "text/event-stream")], body))
    };
    let settings = format!("{}\nupstream_head_timeout = \"1s\"", Deployment::SCOPED);
    let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).resource(settings).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client.write(&Request::new("GET", Deployment::ENDPOINT).bearer(&token).session(&session).to_bytes()).await;
    assert_eq!(client.head().await.unwrap().status, 200);
    tokio::time::sleep(Duration::from_secs(3)).await;
    events.send(": late\n\n".into()).unwrap();
    assert_eq!(client.chunk().await.as_deref(), Some(b": late\n\n".as_slice()));
}

/// L9: the number of connections to an upstream is bounded over all workers. At the limit, requests get 503
/// immediately, and are served again when connections become free. Idle connections of another worker count as free.
#[tokio::test]
async fn too_many_connections() {
    const MOST: usize = 3;
    let raw = upstream().await;
    let settings = format!("{}\nupstream_head_timeout = \"2s\"", Deployment::SCOPED);
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .resource(settings)
        .tables(format!("[limits]\nupstream_connections = {MOST}"))
        .start()
        .await;
    let token = deployment.good_token();
    let mut clients = Vec::new();
    for _ in 0..MOST {
        let mut client = Connection::open(deployment.portcullis.address()).await;
        client.write(&hanging(&token).to_bytes()).await;
        clients.push(client);
    }
    raw.until_open(MOST).await;
    let answer = deployment.send(good(&token)).await;
    answer.assert_rpc_error(503, -32603);
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    deployment.portcullis.assert_denied(&answer, "upstream.too_many_connections").await;
    assert_eq!(deployment.send(Request::new("GET", "/healthz")).await.status, 200);
    for client in &mut clients {
        assert_timed_out(&client.answer().await.unwrap());
    }
    raw.until_open(0).await;
    // New connections go to the workers in turn, so each needs idle connections of the other.
    for _ in 0..4 * MOST {
        let mut clients = Vec::new();
        for _ in 0..MOST {
            let mut client = Connection::open(deployment.portcullis.address()).await;
            client.write(&good(&token).to_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(client.answer().await.unwrap().status, 200);
        }
        assert!(raw.open() <= MOST, "{} connections", raw.open());
    }
}

/// L9: a token with more requests in progress than the process has files does not block `/healthz` or other users.
#[tokio::test]
async fn requests_without_end() {
    const REQUESTS: usize = 570;
    let raw = upstream().await;
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .files("-Sn 512")
        .tables("[limits]\nmax_connections = 1000")
        .start()
        .await;
    let (mallory, alice) = (deployment.token().subject("mallory").sign(), deployment.token().subject("alice").sign());
    let mut refused = tokio::task::JoinSet::new();
    for _ in 0..REQUESTS.div_ceil(95) {
        let client = Http2::connect(deployment.portcullis.address()).await;
        for _ in 0..95 {
            let mut client = client.clone();
            let request = Http2::post(Deployment::ENDPOINT)
                .header("authorization", format!("Bearer {mallory}"))
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/list")
                .header("x-hang", "1");
            refused.spawn(async move { client.send(request, modern_call(1, "tools/list", &json!({}))).await });
        }
    }
    for _ in 0..20 {
        assert_eq!(deployment.send(Request::new("GET", "/healthz")).await.status, 200);
        assert_eq!(deployment.send(good(&alice)).await.status, 200);
        assert_eq!(deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await.assert_unauthorized(), None);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // All responses have Retry-After.
    while let Some(answer) = refused.try_join_next() {
        let answer = answer.unwrap().unwrap();
        assert!(matches!(answer.status, 429 | 503) && answer.count("retry-after") == 1, "{answer:?}");
    }
    assert!(!deployment.portcullis.log().contains("a connection was not accepted"), "it never ran out of files");
}
