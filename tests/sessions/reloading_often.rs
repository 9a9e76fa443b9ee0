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
    let server = Arc::new(ReloadableServer::start(events.listening_upstream().await, "").await);
    let mut streams = open_streams(&server, amount.streams).await;
    let clients = Clients::start(&server, amount.requests).await;
    for number in 0..RELOADS {
        if number % 2 == 0 {
            reload_valid(&server, number).await;
        } else {
            reload_invalid(&server).await;
        }
    }
    clients.finish().await;

    for (number, stream) in streams.iter_mut().enumerate() {
        events.send(number);
        let event = ReloadableServer::next_event(stream).await;
        assert_eq!(event.as_deref(), Some(EventStreams::EVENT.as_bytes()), "stream {number}");
    }
    assert_eq!(server.issuer.key_requests(), 1);
}

/// Opens streams, each of another user.
async fn open_streams(server: &ReloadableServer, count: usize) -> Vec<Connection> {
    let mut streams = Vec::new();
    for number in 0..count {
        let token = server.issuer.test_issuer().token().audience(ReloadableServer::MCP);
        let token = token.subject(&format!("listener-{number}")).scope("mcp:tools").sign();
        let session = server.open_session("/mcp", &token).await;
        streams.push(server.open_stream("/mcp", &token, &session).await);
    }
    streams
}

/// Reloads a configuration that changes limits and the second resource. No session and no stream ends.
async fn reload_valid(server: &ReloadableServer, number: usize) {
    let other = format!("\"/other\"\nrealm = \"realm {number}\"\nupstream_head_timeout = \"{}s\"", 60 + number);
    let limits = "[limits]\nmax_body = 100000\n[[issuer]]";
    let line = server.reload(&[("\"/other\"", &other), ("[[issuer]]", limits)]).await;
    assert_eq!(line["level"], "INFO", "{number}: {line}");
    assert_eq!(line["sessions.ended"], 0, "{line}");
    assert_eq!(line["streams.ended"], 0, "{line}");
}

/// Reloads a configuration with an unknown key.
async fn reload_invalid(server: &ReloadableServer) {
    let line = server.reload(&[("\"/other\"", "\"/other\"\nrealms = \"x\"")]).await;
    assert_eq!(line["level"], "ERROR", "{line}");
}

/// Clients that send requests to both resources until they are told to finish.
struct Clients {
    tasks: JoinSet<()>,
    may_finish: Arc<AtomicBool>,
    responses: Arc<AtomicUsize>,
    /// The number of requests that all clients send at least.
    requests: usize,
}

impl Clients {
    async fn start(server: &ReloadableServer, requests: usize) -> Self {
        let address = server.portcullis.address();
        let may_finish = Arc::new(AtomicBool::new(false));
        let responses = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let (endpoint, resource) =
                if number % 2 == 0 { ("/mcp", ReloadableServer::MCP) } else { ("/other", ReloadableServer::OTHER) };
            let token = server.token(resource);
            let session = server.open_session(endpoint, &token).await;
            let may_finish = Arc::clone(&may_finish);
            let responses = Arc::clone(&responses);
            tasks.spawn(async move {
                let mut connection = Connection::open(address).await;
                while !may_finish.load(Ordering::Relaxed) || responses.load(Ordering::Relaxed) < requests {
                    let response = connection.send(&Request::echo(endpoint, &token, &session)).await;
                    assert_eq!(response.status, 200, "{response:?}");
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { tasks, may_finish, responses, requests }
    }

    /// Waits until all clients have finished without an error.
    async fn finish(mut self) {
        self.may_finish.store(true, Ordering::Relaxed);
        while let Some(client) = self.tasks.join_next().await {
            client.unwrap();
        }
        assert!(self.responses.load(Ordering::Relaxed) >= self.requests);
    }
}
