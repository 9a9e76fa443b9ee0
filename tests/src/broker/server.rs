//! [`BrokerServer`]: a server with a broker in front of a provider.

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use portcullis_broker::BrokerKeys;
use tokio::time::sleep;
use url::Url;

use super::{BrokerIdp, ProviderKind, browser::address, front::Front, replica::Replica};
use crate::{
    EventStreams, Finished, Portcullis, Redis, ReservedPort, Scratch, TIMEOUT, Upstream,
    wait_for_state, wait_until_ready,
};

/// The settings of a [`BrokerServer`].
#[derive(Clone, Copy)]
pub struct BrokerSettings {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// Further lines of `[broker]`.
    pub broker: &'static str,
    /// Further tables at the end of the configuration.
    pub tables: &'static str,
    /// The configured value of `upstream`. Default: the address of the recording upstream.
    pub upstream: Option<&'static str>,
}

impl BrokerSettings {
    /// The defaults, in front of this provider.
    pub fn of(kind: ProviderKind) -> Self {
        Self {
            kind,
            broker: "",
            tables: "",
            upstream: None,
        }
    }
}

/// A server with a broker, its provider, and an upstream for the endpoints `/mcp` and `/other`. It
/// keeps its address and its state directory when it restarts. It can consist of several replicas,
/// one of which gets all requests. The provider is an imitation by default.
pub struct BrokerServer<P = BrokerIdp> {
    /// The provider at which users sign in.
    pub idp: P,
    /// The MCP server of both endpoints.
    pub upstream: Upstream,
    /// The event streams of the upstream.
    pub streams: EventStreams,
    base_url: Url,
    replicas: Vec<Replica>,
    /// The number of the replica that gets the requests.
    current: usize,
    /// Passes requests on to this replica.
    front: Option<Front>,
    _keys: Option<[Scratch; 2]>,
}

impl BrokerServer {
    /// Starts a server in front of this provider.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start(kind: ProviderKind) -> Self {
        Self::with(BrokerSettings::of(kind)).await
    }

    /// Starts a server with these settings, which keeps its records in its state directory.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn with(settings: BrokerSettings) -> Self {
        let port = ReservedPort::new();
        let base_url = format!("http://{}", port.address());
        let idp = BrokerIdp::start(settings.kind, &base_url).await;
        let table = idp.table();
        Self::in_front_of(port, idp, &table, settings).await
    }

    /// Starts replicas with these settings, which keep their records in Redis. Each has another
    /// state directory. The first one gets all requests.
    ///
    /// # Panics
    /// Panics if they do not start, or Redis has no persistence.
    pub async fn replicated(settings: BrokerSettings, redis: &Redis, count: usize) -> Self {
        let ports: Vec<_> = (0..count).map(|_| ReservedPort::new()).collect();
        let front = Front::start(ports[0].address()).await;
        let base_url = format!("http://{}", front.address());
        let idp = BrokerIdp::start(settings.kind, &base_url).await;
        let table = idp.table();
        let mut server = Self::prepare(&base_url, idp).await;
        let keys = [
            Scratch::file("broker-keys", &BrokerKeys::generate().expect("keys")),
            Scratch::file("session-keys", "the-common-key-0123456789abcdef0123456"),
        ];
        let broker = format!("keys = {{ file = \"{}\" }}", keys[0].as_str());
        let tables = format!(
            "[session]\nkeys = [{{ file = \"{}\" }}]\n[shared]\nredis = \"redis://{}\"\n",
            keys[1].as_str(),
            redis.address()
        );
        let configuration = server.configuration(settings, &broker, &table) + &tables;
        for port in ports {
            let replica = Replica::start(port, &configuration).await;
            wait_until_ready(replica.program()).await;
            server.replicas.push(replica);
        }
        server.front = Some(front);
        server._keys = Some(keys);
        server
    }
}

impl<P> BrokerServer<P> {
    /// Starts a server on a reserved port in front of a provider that runs. `table` is its
    /// `[[broker.provider]]`.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn in_front_of(
        port: ReservedPort,
        idp: P,
        table: &str,
        settings: BrokerSettings,
    ) -> Self {
        let mut server = Self::prepare(&format!("http://{}", port.address()), idp).await;
        let configuration = server.configuration(settings, "", table);
        let replica = Replica::start(port, &configuration).await;
        server.replicas.push(replica);
        server
    }

    /// Starts the upstream of a server that clients reach at this URL.
    async fn prepare(base_url: &str, idp: P) -> Self {
        let streams = EventStreams::default();
        Self {
            idp,
            upstream: streams.listening_upstream().await,
            streams,
            base_url: Url::parse(base_url).expect("a URL"),
            replicas: Vec::new(),
            current: 0,
            front: None,
            _keys: None,
        }
    }

    /// Returns the configuration, without the keys that differ for each replica.
    fn configuration(&self, settings: BrokerSettings, broker: &str, table: &str) -> String {
        let upstream = settings
            .upstream
            .map_or_else(|| self.upstream.setting(), str::to_owned);
        format!(
            r#"
            base_url = "{base_url}"
            workers = 2

            [broker]
            {settings_of_broker}
            {broker}
            {table}

            [[resource]]
            endpoint = "/mcp"
            required_scopes = ["mcp:tools"]
            scopes_supported = ["mcp:tools", "mcp:admin"]
            upstream = {upstream}
              [[resource.rule]]
              method = "tools/call"
              name = "admin_*"
              scopes = ["mcp:admin"]

            [[resource]]
            endpoint = "/other"
            required_scopes = ["mcp:tools"]
            upstream = {upstream}

            {tables}
            "#,
            base_url = self.issuer(),
            settings_of_broker = settings.broker,
            tables = settings.tables,
        )
    }

    /// Returns the running program that gets the requests.
    ///
    /// # Panics
    /// Panics if it was stopped.
    pub fn program(&self) -> &Portcullis {
        self.replicas[self.current].program()
    }

    /// Returns the address to which clients send requests.
    pub fn address(&self) -> SocketAddr {
        address(&self.base_url)
    }

    /// Returns a URL of the server.
    ///
    /// # Panics
    /// Panics if the path is malformed.
    pub fn url(&self, path: &str) -> Url {
        self.base_url.join(path).expect("a path")
    }

    /// Returns the issuer of its tokens.
    pub fn issuer(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    /// Returns the state directory.
    pub fn state(&self) -> &Path {
        self.replicas[self.current].state()
    }

    /// Stops the server and starts it again.
    ///
    /// # Panics
    /// Panics if it does not stop in time, or does not start.
    pub async fn restart(&mut self) {
        let finished = self.stop().await;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        self.start_again().await;
    }

    /// Stops the server.
    ///
    /// # Panics
    /// Panics if it does not run, or does not stop in time.
    pub async fn stop(&mut self) -> Finished {
        self.replicas[self.current].stop().await
    }

    /// Kills the server with SIGKILL and starts it again.
    ///
    /// # Panics
    /// Panics if it does not end in time, or does not start.
    pub async fn crash(&mut self) {
        self.replicas[self.current].kill().await;
        self.start_again().await;
    }

    /// Starts a server that was stopped.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start_again(&mut self) {
        self.replicas[self.current].start_again().await;
    }

    /// Kills the replica that gets the requests with SIGKILL. The next one gets them from now on.
    /// A server without another replica starts again.
    ///
    /// # Panics
    /// Panics if it does not end in time, or does not start.
    pub async fn fail_over(&mut self) {
        self.replicas[self.current].kill().await;
        self.use_next();
        if !self.replicas[self.current].is_running() {
            self.start_again().await;
        }
    }

    /// Starts the replica before the one that gets the requests, which was killed, and lets it get
    /// the requests again. A server without another replica runs already.
    ///
    /// # Panics
    /// Panics if it does not start, or is not ready in time.
    pub async fn recover(&mut self) {
        let count = self.replicas.len();
        let killed = (self.current + count - 1) % count;
        if !self.replicas[killed].is_running() {
            self.replicas[killed].start_again().await;
            wait_until_ready(self.replicas[killed].program()).await;
        }
        self.use_replica(killed);
    }

    /// Lets the next replica get the requests.
    pub fn use_next(&mut self) {
        self.use_replica((self.current + 1) % self.replicas.len());
    }

    /// Waits until all replicas have noticed that Redis was killed. One that has not still reports
    /// that it is ready.
    ///
    /// # Panics
    /// Panics if that takes too long.
    pub async fn wait_for_loss_of_redis(&self) {
        for replica in &self.replicas {
            wait_for_state(replica.program(), "unreachable").await;
        }
    }

    /// Waits until all replicas can use Redis. They connect again within 250 ms.
    ///
    /// # Panics
    /// Panics if that takes too long.
    pub async fn wait_for_redis(&self) {
        for replica in &self.replicas {
            wait_until_ready(replica.program()).await;
            let started = Instant::now();
            while !replica.can_use_records().await {
                assert!(started.elapsed() < TIMEOUT, "the records cannot be used");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }

    fn use_replica(&mut self, number: usize) {
        self.current = number;
        if let Some(front) = &self.front {
            front.pass_to(self.replicas[number].address());
        }
    }

    /// Runs a server that was stopped, and that cannot start, to its end.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn run_to_its_end(&self) -> Finished {
        let configuration = self.replicas[self.current].configuration();
        Portcullis::run(&["serve", "--config", configuration]).await
    }
}
