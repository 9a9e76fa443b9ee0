//! Requests to a server with a broker, from the router on.

mod endpoints;
mod events;
mod keys;
mod tokens;

use std::{net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_config::{from_text, plan::Plan};
use portcullis_metadata::{Clock, SystemClock};
use portcullis_telemetry::{AccessLog, LogFormat};
use portcullis_testkit::ManualClock;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    sync::watch,
};

use super::{persistence::BrokerPersistence, process::BrokerProcess};
use crate::{
    connection::{
        ConnectionLimits, activity::Activity, protocol, request_body::BodyTimeouts, serve,
    },
    observers::Observers,
    persistence::session_persistence::SessionPersistence,
    router::Router,
    state::{Process, ServerState},
};

const CONFIG: &str = r#"
    base_url = "http://127.0.0.1:3000"
    state_dir = "off"
    [broker]
    [[broker.provider]]
    kind = "keycloak"
    issuer = "https://auth.example.com/realms/prod"
    client_id = "portcullis"
    client_secret = { env = "PATH" }
    [[resource]]
    endpoint = "/mcp"
    upstream = { http = "http://127.0.0.1:1/" }
    [[resource]]
    endpoint = "/other"
    upstream = { http = "http://127.0.0.1:1/" }
"#;

fn plan(edits: &[(&str, &str)]) -> Plan {
    let mut text = CONFIG.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Plan::new(&from_text(&text).unwrap()).unwrap()
}

fn observers() -> Observers {
    Observers {
        access: Arc::new(AccessLog::without_writer(LogFormat::default())),
        audit: None,
        metrics: None,
        traces: None,
    }
}

/// The state of a server with a broker.
struct TestServer {
    state: Arc<ArcSwap<ServerState>>,
}

/// A response as it was sent.
struct Received(String);

impl TestServer {
    /// Starts a server that keeps everything in memory.
    fn new() -> Self {
        Self::observed(|_| {})
    }

    /// Starts one with further observers.
    fn observed(add: impl FnOnce(&mut Observers)) -> Self {
        let plan = plan(&[]);
        let persistence = BrokerPersistence::in_memory(&plan, Arc::new(SystemClock::new()));
        let mut observers = observers();
        add(&mut observers);
        Self::build(
            &plan,
            persistence.unwrap(),
            observers,
            Arc::new(SystemClock::new()),
        )
    }

    /// Starts one that keeps everything in memory, and whose clock stands still.
    fn with_still_clock() -> Self {
        let plan = plan(&[]);
        let clock = Arc::new(ManualClock::new());
        let persistence = BrokerPersistence::in_memory(&plan, Arc::clone(&clock) as _);
        Self::build(&plan, persistence.unwrap(), observers(), clock)
    }

    /// Starts one with this persistence.
    fn with(plan: &Plan, persistence: BrokerPersistence) -> Self {
        Self::build(plan, persistence, observers(), Arc::new(SystemClock::new()))
    }

    fn build(
        plan: &Plan,
        persistence: BrokerPersistence,
        observers: Observers,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let mut sessions = SessionPersistence::in_memory(plan)
            .share(plan.replicas.as_ref(), Arc::clone(&clock))
            .unwrap();
        let product = crate::Product::default();
        let (process, _) = Process::new(plan, product, clock, observers, &mut sessions);
        let process = process.with_broker(Some(BrokerProcess::new(persistence)));
        let state = ServerState::new(plan, &process, None).unwrap();
        state.receive_broker_ends();
        Self {
            state: Arc::new(ArcSwap::from_pointee(state)),
        }
    }

    /// Replaces the configuration, as a reload does.
    fn reload(&self, plan: &Plan) {
        let previous = self.state.load_full();
        let state = ServerState::new(plan, previous.process(), Some(&previous)).unwrap();
        self.state.store(Arc::new(state));
        self.state.load().receive_broker_ends();
    }

    /// Sends a request on a connection of its own.
    async fn send(&self, request: &str) -> Received {
        let (mut client, server) = duplex(128 << 10);
        let limits = ConnectionLimits {
            max_head: 64 << 10,
            max_headers: 100,
            idle: std::time::Duration::from_secs(30),
            body: BodyTimeouts {
                pause: std::time::Duration::from_secs(30),
                whole: std::time::Duration::from_secs(300),
            },
            max_streams: 100,
            max_resets: 20,
        };
        let router = Router::new(Arc::clone(&self.state), 0, limits.max_headers);
        let (_running, draining) = watch::channel(false);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let protocol = protocol(limits);
        let serving = serve(
            server,
            peer,
            &protocol,
            limits,
            router,
            Activity::new(),
            draining,
        );
        let exchange = async move {
            client.write_all(request.as_bytes()).await.unwrap();
            let mut received = Received(String::new());
            let mut piece = [0; 4096];
            while !received.is_complete() {
                match client.read(&mut piece).await.unwrap() {
                    0 => break,
                    length => received
                        .0
                        .push_str(std::str::from_utf8(&piece[..length]).unwrap()),
                }
            }
            // The server waits for the end of the connection if it has not read all of it.
            drop(client);
            received
        };
        tokio::join!(serving, exchange).1
    }

    /// Sends a request without a body.
    async fn request(&self, method: &str, target: &str, headers: &str) -> Received {
        self.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\n{headers}\r\n"
        ))
        .await
    }

    async fn get(&self, target: &str) -> Received {
        self.request("GET", target, "").await
    }
}

impl Received {
    /// Returns whether the body has its declared length.
    fn is_complete(&self) -> bool {
        let Some((_, body)) = self.0.split_once("\r\n\r\n") else {
            return false;
        };
        let length = self.header("content-length");
        length.is_some_and(|length| body.len() == length.parse::<usize>().unwrap())
    }

    fn status(&self) -> u16 {
        self.0[9..12].parse().unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head().lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn head(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().0
    }

    fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().1
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.body()).unwrap()
    }
}
