//! Many reloads of the configuration while clients use the server.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use http::Method;
use portcullis_scenarios::{ChannelBody, Connection, RecordedRequest, ReloadableServer, Request, Upstream, call};
use serde_json::json;
use tokio::task::JoinSet;

const RELOADS: usize = 50;
const CLIENTS: usize = 8;
const STREAMS: usize = 20;

/// J10: during 50 alternately valid and invalid reloads, no request fails and no stream ends.
#[tokio::test]
async fn fifty_reloads() {
    let senders = Arc::new(Mutex::new(Vec::new()));
    let opened = Arc::clone(&senders);
    let upstream = Upstream::scripted(move |request: &RecordedRequest| {
        (request.method == Method::GET).then(|| {
            let (sender, body) = ChannelBody::new();
            opened.lock().unwrap().push(sender);
            Upstream::streaming(200, &[("content-type", "text/event-stream")], body)
        })
    })
    .await;
    let reloading = Arc::new(ReloadableServer::start(upstream, "").await);
    let address = reloading.portcullis.address();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let token = reloading.token(ReloadableServer::MCP);
        let session = reloading.open_session("/mcp", &token).await;
        let get = Request::new("GET", "/mcp").header("Accept", "text/event-stream").bearer(&token).session(&session);
        let mut connection = Connection::open(address).await;
        connection.write(&get.to_bytes()).await;
        assert_eq!(connection.head().await.unwrap().status, 200);
        streams.push(connection);
    }
    let (finished, response_count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (endpoint, resource) =
            if number % 2 == 0 { ("/mcp", ReloadableServer::MCP) } else { ("/other", ReloadableServer::OTHER) };
        let token = reloading.token(resource);
        let session = reloading.open_session(endpoint, &token).await;
        let (finished, response_count) = (Arc::clone(&finished), Arc::clone(&response_count));
        clients.spawn(async move {
            let mut connection = Connection::open(address).await;
            while !finished.load(Ordering::Relaxed) || response_count.load(Ordering::Relaxed) < 2_000 {
                let body = call(2, "echo", &json!({}));
                let response = connection.send(&Request::post(endpoint, body).bearer(&token).session(&session)).await;
                assert_eq!(response.status, 200, "{response:?}");
                response_count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for number in 0..RELOADS {
        let realm = format!("\"/other\"\nrealm = \"realm {number}\"\nupstream_head_timeout = \"{}s\"", 60 + number);
        let line = match number % 2 {
            0 => {
                reloading
                    .reload(&[("\"/other\"", &realm), ("[[issuer]]", "[limits]\nmax_body = 100000\n[[issuer]]")])
                    .await
            }
            _ => reloading.reload(&[("\"/other\"", "\"/other\"\nrealms = \"x\"")]).await,
        };
        let expected = if number % 2 == 0 { "INFO" } else { "ERROR" };
        assert_eq!(line["level"], expected, "{number}: {line}");
        if number % 2 == 0 {
            assert_eq!((&line["sessions.ended"], &line["streams.ended"]), (&0.into(), &0.into()), "{line}");
        }
    }
    finished.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert!(response_count.load(Ordering::Relaxed) >= 2_000);
    for (number, stream) in streams.iter_mut().enumerate() {
        senders.lock().unwrap()[number].send("data: open\n\n".into()).unwrap();
        assert_eq!(
            ReloadableServer::next_event(stream).await.as_deref(),
            Some(&b"data: open\n\n"[..]),
            "stream {number}"
        );
    }
    assert_eq!(reloading.issuer.key_requests(), 1);
}
