//! [`Replica`]: one process of a server with a broker.

use std::{net::SocketAddr, path::Path};

use crate::{Finished, Portcullis, Request, ReservedPort, Scratch, Signal};

/// One process of a server with a broker. It keeps its address and its state directory when it
/// restarts.
pub(super) struct Replica {
    program: Option<Portcullis>,
    configuration: Scratch,
    state: Scratch,
    port: ReservedPort,
}

impl Replica {
    /// Starts a process that listens on this port. The configuration names no address and no state
    /// directory.
    pub(super) async fn start(port: ReservedPort, configuration: &str) -> Self {
        let state = Scratch::folder("broker-state");
        let configuration = format!(
            "listen = \"{}\"\nstate_dir = \"{}\"\n{configuration}",
            port.address(),
            state.as_str()
        );
        let mut replica = Self {
            program: None,
            configuration: Scratch::file("broker.toml", &configuration),
            state,
            port,
        };
        replica.start_again().await;
        replica
    }

    pub(super) async fn start_again(&mut self) {
        self.program = Some(Portcullis::start(&["serve", "--config", self.configuration()]).await);
    }

    pub(super) async fn stop(&mut self) -> Finished {
        self.program.take().expect("it runs").stop().await
    }

    /// Kills the process with SIGKILL, if it was not killed already.
    pub(super) async fn kill(&mut self) {
        let program = self.program.take().expect("it runs");
        program.signal(Signal::KILL);
        program.wait().await;
    }

    pub(super) fn is_running(&self) -> bool {
        self.program.is_some()
    }

    pub(super) fn program(&self) -> &Portcullis {
        self.program.as_ref().expect("it runs")
    }

    /// Returns whether the broker can look for a client in its records.
    pub(super) async fn can_use_records(&self) -> bool {
        let body = "grant_type=refresh_token&refresh_token=none&client_id=none";
        let request = Request::new("POST", "/oauth/token")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body);
        request.send(self.address()).await.status != 503
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    pub(super) fn state(&self) -> &Path {
        self.state.path()
    }

    pub(super) fn configuration(&self) -> &str {
        self.configuration.as_str()
    }
}
