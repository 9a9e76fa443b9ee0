//! Upstreams that respond slowly or never: the time and the number of waiting requests are bounded.

use std::time::{Duration, Instant};

use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, Http2, HttpResponse, INITIALIZE, RawRequest, RawUpstream,
    Request, Upstream, modern_call_message, modern_request,
};
use serde_json::json;

/// Starts an upstream that responds to every request except hanging ones.
async fn upstream() -> RawUpstream {
    RawUpstream::scripted(|request: &RawRequest| {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        (!request.head.contains("x-hang")).then(|| format!("{head}{body}").into())
    })
    .await
}

fn list(token: &str) -> Request {
    modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(token)
}

fn hanging(token: &str) -> Request {
    list(token).header("X-Hang", "1")
}

fn assert_timed_out(response: &HttpResponse) {
    response.assert_rpc_error(504, -32603);
    assert!(
        response.text().contains("did not answer in time"),
        "{response:?}"
    );
}

/// L9: if the head of a response does not arrive in time, the client gets 504 and the upstream
/// connection is closed, on an idle connection as on a new one. Other requests are served
/// meanwhile.
#[tokio::test]
async fn no_head_in_time() {
    let raw = upstream().await;
    let settings = format!("{}\nupstream_head_timeout = \"2s\"", Deployment::SCOPED);
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .resource(settings)
        .start()
        .await;
    let token = deployment.good_token();
    for _ in 0..2 {
        let mut client = Connection::open(deployment.portcullis.address()).await;
        assert_eq!(client.send(&list(&token)).await.status, 200);
        let started = Instant::now();
        client.write(&hanging(&token).to_bytes()).await;
        assert_eq!(deployment.send(list(&token)).await.status, 200);
        let response = client.response().await.unwrap();
        assert!(
            started.elapsed() >= Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
        assert_timed_out(&response);
        deployment
            .portcullis
            .assert_denied(&response, "upstream.head_timeout")
            .await;
        assert_eq!(
            client.send(&list(&token)).await.status,
            200,
            "the client's connection stays open"
        );
    }
    let mut client = Connection::open(deployment.portcullis.address()).await;
    let requests = raw.count();
    client.write(&hanging(&token).to_bytes()).await;
    raw.wait_for_requests(requests + 1).await;
    let open = raw.open();
    assert_timed_out(&client.response().await.unwrap());
    raw.wait_for_open(open - 1).await;
}

/// L9: after its head, a stream can pause for longer than `upstream_head_timeout`.
#[tokio::test]
async fn streams_can_pause() {
    let (events, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script = move |request: &portcullis_scenarios::RecordedRequest| {
        let body = (request.method == http::Method::GET).then(|| body.lock().take())??;
        Some(Upstream::streaming(
            200,
            &[("content-type", "text/event-stream")],
            body,
        ))
    };
    let settings = format!("{}\nupstream_head_timeout = \"2s\"", Deployment::SCOPED);
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .resource(settings)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client
        .write(
            &Request::new("GET", Deployment::ENDPOINT)
                .bearer(&token)
                .session(&session)
                .to_bytes(),
        )
        .await;
    assert_eq!(client.head().await.unwrap().status, 200);

    tokio::time::sleep(Duration::from_millis(3500)).await;
    events.send(": late\n\n".into()).unwrap();
    assert_eq!(
        client.chunk().await.as_deref(),
        Some(b": late\n\n".as_slice())
    );
}

/// L9: the number of connections to an upstream is bounded over all workers. At the limit, requests
/// get 503 immediately, and are served again when connections become free. Idle connections of
/// another worker count as free.
#[tokio::test]
async fn too_many_connections() {
    const LIMIT: usize = 3;
    let raw = upstream().await;
    let settings = format!("{}\nupstream_head_timeout = \"5s\"", Deployment::SCOPED);
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .resource(settings)
        .tables(format!("[limits]\nupstream_connections = {LIMIT}"))
        .start()
        .await;
    let token = deployment.good_token();
    let mut clients = Vec::new();
    for _ in 0..LIMIT {
        let mut client = Connection::open(deployment.portcullis.address()).await;
        client.write(&hanging(&token).to_bytes()).await;
        clients.push(client);
    }
    raw.wait_for_open(LIMIT).await;
    let response = deployment.send(list(&token)).await;
    response.assert_rpc_error(503, -32603);
    assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "upstream.too_many_connections")
        .await;
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );

    for client in &mut clients {
        assert_timed_out(&client.response().await.unwrap());
    }
    raw.wait_for_open(0).await;

    // New connections go to the workers in turn, so each needs idle connections of the other.
    for _ in 0..4 * LIMIT {
        let mut clients = Vec::new();
        for _ in 0..LIMIT {
            let mut client = Connection::open(deployment.portcullis.address()).await;
            client.write(&list(&token).to_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(client.response().await.unwrap().status, 200);
        }
        assert!(raw.open() <= LIMIT, "{} connections", raw.open());
    }
}

/// L9: a token with more requests in progress than the process has files does not block `/healthz`
/// or other users.
#[tokio::test]
async fn more_requests_than_files() {
    const REQUESTS: usize = 570;
    let raw = upstream().await;
    let deployment = Deployment::builder()
        .upstream_setting(raw.setting())
        .file_limit("-Sn 512")
        .tables("[limits]\nmax_connections = 1000")
        .start()
        .await;
    let mallory = deployment.token().subject("mallory").sign();
    let alice = deployment.token().subject("alice").sign();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..REQUESTS.div_ceil(95) {
        let client = Http2::connect(deployment.portcullis.address()).await;
        for _ in 0..95 {
            let mut client = client.clone();
            let request = Http2::post(Deployment::ENDPOINT)
                .header("authorization", format!("Bearer {mallory}"))
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/list")
                .header("x-hang", "1");
            requests.spawn(async move {
                client
                    .send(request, modern_call_message(1, "tools/list", &json!({})))
                    .await
            });
        }
    }
    for _ in 0..20 {
        assert_eq!(
            deployment
                .send(Request::new("GET", "/healthz"))
                .await
                .status,
            200
        );
        assert_eq!(deployment.send(list(&alice)).await.status, 200);
        assert_eq!(
            deployment
                .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
                .await
                .assert_unauthorized(),
            None
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let mut rejected = 0;
    while let Some(response) = requests.try_join_next() {
        let response = response.unwrap().unwrap();
        assert!(matches!(response.status, 429 | 503), "{response:?}");
        assert_eq!(response.count("retry-after"), 1, "{response:?}");
        rejected += 1;
    }
    assert!(rejected > 0, "the requests beyond the limit are rejected");
    assert!(
        !deployment
            .portcullis
            .log()
            .contains("a connection was not accepted"),
        "it never ran out of files"
    );
}
