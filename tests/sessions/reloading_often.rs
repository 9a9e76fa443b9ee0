//! Many reloads of the configuration while clients use the server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_scenarios::{Connection, EventStreams, ReloadableServer, Request, is_full_run};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const RELOADS: usize = 50;
const CLIENTS: usize = 8;

/// The endpoints and their resources.
const RESOURCES: [(&str, &str); 2] = [
    ("/mcp", ReloadableServer::MCP),
    ("/other", ReloadableServer::OTHER),
];

/// How long the clients of an endpoint may be without a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// How much the clients do while the configuration changes.
struct Load {
    /// The number of requests that the clients of all endpoints send together, at least.
    requests: usize,
    streams: usize,
}

impl Load {
    const SMALL: Self = Self {
        requests: 2_000,
        streams: 20,
    };
    const FULL: Self = Self {
        requests: 20_000,
        streams: 200,
    };

    fn chosen() -> Self {
        if is_full_run() {
            Self::FULL
        } else {
            Self::SMALL
        }
    }
}

/// J10: during 50 alternately valid and invalid reloads, no request fails and no stream ends.
#[tokio::test]
async fn many_reloads_under_load() {
    let load = Load::chosen();
    let events = EventStreams::default();
    let server = ReloadableServer::start(events.listening_upstream().await, "").await;
    let mut streams = open_streams(&server, load.streams).await;
    let clients = Clients::start(&server, load.requests).await;
    for number in 0..RELOADS {
        if number % 2 == 0 {
            reload_valid(&server, number).await;
        } else {
            reload_invalid(&server).await;
        }
        clients.receive_more_responses(number).await;
    }
    clients.finish().await;

    for (number, stream) in streams.iter_mut().enumerate() {
        events.send(number);
        let event = ReloadableServer::next_event(stream).await;
        assert_eq!(
            event.as_deref(),
            Some(EventStreams::EVENT.as_bytes()),
            "stream {number}"
        );
    }
    // The issuer does not change, so that all configurations use its keys.
    assert_eq!(server.issuer.key_requests(), 1);
}

/// Opens streams, each of another user. One after the other: the upstream numbers them in the order
/// in which they open.
async fn open_streams(server: &ReloadableServer, count: usize) -> Vec<Connection> {
    let mut streams = Vec::new();
    for number in 0..count {
        let token = server
            .issuer
            .test_issuer()
            .token()
            .audience(ReloadableServer::MCP);
        let token = token
            .subject(&format!("listener-{number}"))
            .scope("mcp:tools")
            .sign();
        let session = server.open_session("/mcp", &token).await;
        streams.push(server.open_stream("/mcp", &token, &session).await);
    }
    streams
}

/// Reloads a configuration whose limits and second resource are new each time. No session and no
/// stream ends.
async fn reload_valid(server: &ReloadableServer, number: usize) {
    let other = format!(
        "\"/other\"\nrealm = \"realm {number}\"\nupstream_head_timeout = \"{}s\"",
        60 + number
    );
    let limits = format!("[limits]\nmax_body = {}\n[[issuer]]", 100_000 + number);
    let line = server
        .reload(&[("\"/other\"", &other), ("[[issuer]]", &limits)])
        .await;
    assert_eq!(line["level"], "INFO", "{number}: {line}");
    assert_eq!(line["sessions.ended"], 0, "{line}");
    assert_eq!(line["streams.ended"], 0, "{line}");
}

/// Reloads a configuration with an unknown key.
async fn reload_invalid(server: &ReloadableServer) {
    let line = server
        .reload(&[("\"/other\"", "\"/other\"\nrealms = \"x\"")])
        .await;
    assert_eq!(line["level"], "ERROR", "{line}");
}

/// The numbers of responses, one for each of [`RESOURCES`].
#[derive(Default)]
struct Responses([AtomicUsize; 2]);

impl Responses {
    fn counts(&self) -> [usize; 2] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    fn total(&self) -> usize {
        self.counts().into_iter().sum()
    }
}

/// Clients that send requests to both resources until they are told to finish.
struct Clients {
    tasks: JoinSet<()>,
    may_finish: Arc<AtomicBool>,
    responses: Arc<Responses>,
}

impl Clients {
    /// Starts clients that send at least this number of requests together.
    async fn start(server: &ReloadableServer, requests: usize) -> Self {
        let address = server.portcullis.address();
        let may_finish = Arc::new(AtomicBool::new(false));
        let responses = Arc::new(Responses::default());
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let position = number % RESOURCES.len();
            let (endpoint, resource) = RESOURCES[position];
            let token = server.token(resource);
            let session = server.open_session(endpoint, &token).await;
            let may_finish = Arc::clone(&may_finish);
            let responses = Arc::clone(&responses);
            tasks.spawn(async move {
                let mut connection = Connection::open(address).await;
                while !may_finish.load(Ordering::Relaxed) || responses.total() < requests {
                    let response = connection
                        .send(&Request::echo(endpoint, &token, &session))
                        .await;
                    assert_eq!(response.status, 200, "{response:?}");
                    responses.0[position].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self {
            tasks,
            may_finish,
            responses,
        }
    }

    /// Waits until the clients of each endpoint have received another response. A client that
    /// failed receives none.
    async fn receive_more_responses(&self, reload: usize) {
        let before = self.responses.counts();
        let all_grow = async {
            while self
                .responses
                .counts()
                .iter()
                .zip(before)
                .any(|(count, before)| *count <= before)
            {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let result = timeout(RESPONSE_TIMEOUT, all_grow).await;
        assert!(
            result.is_ok(),
            "reload {reload}: an endpoint does not respond: {before:?}, {:?}",
            self.responses.counts()
        );
    }

    /// Waits until all clients have finished without an error.
    async fn finish(mut self) {
        self.may_finish.store(true, Ordering::Relaxed);
        while let Some(client) = self.tasks.join_next().await {
            client.unwrap();
        }
    }
}
