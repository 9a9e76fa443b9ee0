//! [`BrokerServer`]: a server with a broker in front of an imitated provider.

use std::path::Path;

use url::Url;

use super::{BrokerIdp, ProviderKind};
use crate::{EventStreams, Finished, Portcullis, ReservedPort, Scratch, Signal, Upstream};

/// The settings of a [`BrokerServer`].
#[derive(Clone, Copy)]
pub struct BrokerSettings {
    /// The provider.
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
/// keeps its address and its state directory when it restarts.
pub struct BrokerServer {
    /// The provider at which users sign in.
    pub idp: BrokerIdp,
    /// The MCP server of both endpoints.
    pub upstream: Upstream,
    /// The event streams of the upstream.
    pub streams: EventStreams,
    program: Option<Portcullis>,
    base_url: Url,
    configuration: Scratch,
    state: Scratch,
    _port: ReservedPort,
}

impl BrokerServer {
    /// Starts a server in front of this provider.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start(kind: ProviderKind) -> Self {
        Self::with(BrokerSettings::of(kind)).await
    }

    /// Starts a server with these settings.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn with(settings: BrokerSettings) -> Self {
        let port = ReservedPort::new();
        let base_url = format!("http://{}", port.address());
        let idp = BrokerIdp::start(settings.kind, &base_url).await;
        let streams = EventStreams::default();
        let upstream = streams.listening_upstream().await;
        let state = Scratch::folder("broker-state");
        let configuration = format!(
            r#"
            listen = "{listen}"
            base_url = "{base_url}"
            state_dir = "{state}"
            workers = 2

            [broker]
            {broker}
            {provider}

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
            listen = port.address(),
            state = state.as_str(),
            broker = settings.broker,
            provider = idp.table(),
            upstream = settings
                .upstream
                .map_or_else(|| upstream.setting(), str::to_owned),
            tables = settings.tables,
        );
        let mut server = Self {
            idp,
            upstream,
            streams,
            program: None,
            base_url: Url::parse(&base_url).expect("a URL"),
            configuration: Scratch::file("broker.toml", &configuration),
            state,
            _port: port,
        };
        server.start_again().await;
        server
    }

    /// Returns the running program.
    ///
    /// # Panics
    /// Panics if it was stopped.
    pub fn program(&self) -> &Portcullis {
        self.program.as_ref().expect("it runs")
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
        self.state.path()
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
        self.program.take().expect("it runs").stop().await
    }

    /// Kills the server and starts it again.
    ///
    /// # Panics
    /// Panics if it does not end in time, or does not start.
    pub async fn crash(&mut self) {
        let program = self.program.take().expect("it runs");
        program.signal(Signal::KILL);
        program.wait().await;
        self.start_again().await;
    }

    /// Starts a server that was stopped.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start_again(&mut self) {
        let arguments = ["serve", "--config", self.configuration.as_str()];
        self.program = Some(Portcullis::start(&arguments).await);
    }

    /// Runs a server that was stopped, and that cannot start, to its end.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn run_to_its_end(&self) -> Finished {
        Portcullis::run(&["serve", "--config", self.configuration.as_str()]).await
    }
}
