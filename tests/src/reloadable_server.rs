//! [`ReloadableServer`]: the program with a configuration file that a test changes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::{
    AuthorizationServer, Connection, HttpResponse, Portcullis, Request, Scratch, Signal, Upstream,
};

/// The program with an issuer, an upstream, and a configuration file that a test changes.
pub struct ReloadableServer {
    /// The program.
    pub portcullis: Portcullis,
    /// The first issuer.
    pub issuer: AuthorizationServer,
    /// The upstream.
    pub upstream: Upstream,
    /// The configuration at the start.
    pub configuration: String,
    file: Scratch,
    reloads: AtomicU64,
    _state: Scratch,
}

impl ReloadableServer {
    /// The first resource.
    pub const MCP: &'static str = "http://127.0.0.1:3000/mcp";
    /// The second resource.
    pub const OTHER: &'static str = "http://127.0.0.1:3000/other";

    /// Starts the program with the resources `/mcp` and `/other` behind the same upstream, and more
    /// tables.
    pub async fn start(upstream: Upstream, tables: &str) -> Self {
        Self::start_limited(upstream, tables, None).await
    }

    /// As [`start`](Self::start), with a limit of resources; see [`Portcullis::start_limited`].
    pub async fn start_limited(upstream: Upstream, tables: &str, limit: Option<&str>) -> Self {
        let issuer = AuthorizationServer::start(Self::MCP);
        let setting = upstream.setting();
        let state = Scratch::path_for("state");
        let configuration = format!(
            "state_dir = \"{}\"\nlisten = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\nworkers = 2\nreload = \"signal\"\n\
             [[issuer]]\nissuer = \"{}\"\n\
             [[resource]]\nendpoint = \"/mcp\"\nrequired_scopes = [\"mcp:tools\"]\nupstream = {setting}\n\
             [[resource]]\nendpoint = \"/other\"\nupstream = {setting}\n{tables}\n",
            state.as_str(),
            issuer.test_issuer().issuer().as_str()
        );
        let file = Scratch::file("portcullis.toml", &configuration);
        let arguments = ["serve", "--config", file.as_str()];
        let portcullis = match limit {
            Some(limit) => Portcullis::start_limited(&arguments, limit).await,
            None => Portcullis::start(&arguments).await,
        };
        Self {
            portcullis,
            issuer,
            upstream,
            configuration,
            file,
            reloads: AtomicU64::new(0),
            _state: state,
        }
    }

    /// Returns the lines of the second resource in the configuration of the start.
    ///
    /// # Panics
    /// Never: the configuration has them.
    pub fn other_resource(&self) -> &str {
        let from = self
            .configuration
            .find("[[resource]]\nendpoint = \"/other\"")
            .expect("the second resource");
        let lines = &self.configuration[from..];
        let end = lines.find("}\n").expect("its upstream") + 2;
        &lines[..end]
    }

    /// Kills the program and starts it again with the configuration that was last written.
    pub async fn restart(mut self) -> Self {
        self.portcullis.signal(Signal::KILL);
        self.portcullis.wait().await;
        self.portcullis = Portcullis::start(&["serve", "--config", self.file.as_str()]).await;
        self.reloads = AtomicU64::new(0);
        self
    }

    /// Writes the configuration of the start, with each first text replaced once by the second. A
    /// program that watches the file never finds a part of it.
    ///
    /// # Panics
    /// Panics if a text to replace is missing, or the file cannot be replaced.
    pub fn write(&self, replacements: &[(&str, &str)]) {
        let mut configuration = self.configuration.clone();
        for (from, to) in replacements {
            assert!(configuration.contains(from), "{from}");
            configuration = configuration.replacen(from, to, 1);
        }
        let new = Scratch::file("portcullis.toml", &configuration);
        std::fs::rename(new.path(), self.file.path()).expect("the file can be replaced");
    }

    /// Writes a configuration, reloads it, and returns the log line of the result.
    pub async fn reload(&self, replacements: &[(&str, &str)]) -> Value {
        self.write(replacements);
        self.portcullis.signal(Signal::HUP);
        self.wait_for_reload().await
    }

    /// Waits for the next reload and returns the log line of its result.
    pub async fn wait_for_reload(&self) -> Value {
        let number = self.reloads.fetch_add(1, Ordering::Relaxed) + 1;
        let is_result =
            |line: &Value| line["config.reload"] == number && line.get("config.reason").is_none();
        self.portcullis.logged("config.reload", is_result).await
    }

    /// Returns a token for one of the resources.
    pub fn token(&self, resource: &str) -> String {
        self.issuer
            .test_issuer()
            .token()
            .audience(resource)
            .scope("mcp:tools")
            .sign()
    }

    /// Sends a request.
    pub async fn send(&self, request: Request) -> HttpResponse {
        request.send(self.portcullis.address()).await
    }

    /// Calls the method `echo` in a session.
    pub async fn call(&self, endpoint: &str, token: &str, session: &str) -> HttpResponse {
        self.send(Request::echo(endpoint, token, session)).await
    }

    /// Reads the next chunk of a stream that is not a comment.
    pub async fn next_event(stream: &mut Connection) -> Option<Vec<u8>> {
        stream.event().await
    }

    /// Opens the event stream of a session.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn open_stream(&self, endpoint: &str, token: &str, session: &str) -> Connection {
        let mut connection = Connection::open(self.portcullis.address()).await;
        connection
            .write(&Request::listen(endpoint, token, session).to_bytes())
            .await;
        assert_eq!(connection.head().await.expect("an answer").status, 200);
        connection
    }

    /// Opens a session and returns its identifier.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn open_session(&self, endpoint: &str, token: &str) -> String {
        let response = self
            .send(Request::post(endpoint, crate::INITIALIZE).bearer(token))
            .await;
        assert_eq!(response.status, 200, "{response:?}");
        response
            .header("mcp-session-id")
            .expect("a session identifier")
            .to_owned()
    }
}
