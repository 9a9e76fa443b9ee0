//! Many reloads of the configuration while clients use the server.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use portcullis_scenarios::{Connection, EventStreams, ReloadableServer, Request, is_full_run};
use tokio::task::JoinSet;

const RELOADS: usize = 50;
const CLIENTS: usize = 8;

/// How much the clients do while the configuration changes.
struct Amount {
    requests: usize,
    streams: usize,
}

impl Amount {
    const SMALL: Self = Self { requests: 2_000, streams: 20 };
    const FULL: Self = Self { requests: 20_000, streams: 200 };

    fn chosen() -> Self {
        if is_full_run() { Self::FULL } else { Self::SMALL }
    }
}

/// J10: during 50 alternately valid and invalid reloads, no request fails and no stream ends.
#[tokio::test]
async fn fifty_reloads() {
    let amount = Amount::chosen();
    let events = EventStreams::default();
    let upstream = events.listening_upstream().await;
    let reloading = Arc::new(ReloadableServer::start(upstream, "").await);
    let address = reloading.portcullis.address();
    let mut streams = Vec::new();
    for number in 0..amount.streams {
        let issuer = reloading.issuer.test_issuer();
        let token =
            issuer.token().audience(ReloadableServer::MCP).subject(&format!("listener-{number}")).scope("mcp:tools");
        let token = token.sign();
        let session = reloading.open_session("/mcp", &token).await;
        streams.push(reloading.open_stream("/mcp", &token, &session).await);
    }
    let finished = Arc::new(AtomicBool::new(false));
    let response_count = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (endpoint, resource) =
            if number % 2 == 0 { ("/mcp", ReloadableServer::MCP) } else { ("/other", ReloadableServer::OTHER) };
        let token = reloading.token(resource);
        let session = reloading.open_session(endpoint, &token).await;
        let finished = Arc::clone(&finished);
        let response_count = Arc::clone(&response_count);
        clients.spawn(async move {
            let mut connection = Connection::open(address).await;
            while !finished.load(Ordering::Relaxed) || response_count.load(Ordering::Relaxed) < amount.requests {
                let response = connection.send(&Request::echo(endpoint, &token, &session)).await;
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
            assert_eq!(line["sessions.ended"], 0, "{line}");
            assert_eq!(line["streams.ended"], 0, "{line}");
        }
    }
    finished.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert!(response_count.load(Ordering::Relaxed) >= amount.requests);

    for (number, stream) in streams.iter_mut().enumerate() {
        events.send(number);
        assert_eq!(
            ReloadableServer::next_event(stream).await.as_deref(),
            Some(EventStreams::EVENT.as_bytes()),
            "stream {number}"
        );
    }
    assert_eq!(reloading.issuer.key_requests(), 1);
}
