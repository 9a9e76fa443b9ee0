use std::{fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, bail};
use http::{HeaderMap, StatusCode};
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use portcullis_scenarios::{free_address, listen_address};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::{expect, program::Program};

/// The attempts to listen on a port that another process may take.
const PORT_ATTEMPTS: usize = 5;

/// A running `portcullis serve`, and its log.
pub(crate) struct Server {
    program: Program,
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a command made by [`serve`] and waits until it listens. Fails when it ends before it
    /// listens.
    pub(crate) async fn start(
        name: impl Into<String>,
        command: &mut Command,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut program = Program::start(name, command, folder)?;
        let address = program.find_line(listen_address).await?;
        Ok(Self { program, address })
    }

    /// Starts a server on a free port that its configuration names, and waits until its issuers are
    /// usable. Fails when it ends before it listens, or other processes take all attempted ports.
    pub(crate) async fn start_on_free_port(
        name: &str,
        folder: &Path,
        command: impl Fn(SocketAddr) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Self> {
        for _ in 0..PORT_ATTEMPTS {
            let address = free_address()?;
            match Self::start(name, &mut command(address)?, folder).await {
                Ok(server) => {
                    expect::equal("the listen address", address, server.address)?;
                    server.ready().await?;
                    return Ok(server);
                }
                Err(error) if format!("{error:#}").contains("cannot listen on") => {}
                Err(error) => return Err(error),
            }
        }
        bail!("other processes took each of {PORT_ATTEMPTS} ports")
    }

    /// Waits until its issuers are usable.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        let readiness = Url::parse(&format!("http://{}/readyz", self.address))?;
        let fetch = HttpFetch::new(Default::default())?;
        loop {
            let response = fetch
                .fetch(FetchRequest::get(readiness.clone(), UrlPolicy::Operator))
                .await?;
            if response.status == StatusCode::OK {
                return Ok(());
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits for the log line of a rejected request, identified by its response headers, and
    /// returns the reason code.
    pub(crate) async fn deny_code_of(&self, headers: &HeaderMap) -> anyhow::Result<String> {
        let id = expect::header(headers, "x-request-id")?.to_owned();
        expect::that(!id.is_empty(), "X-Request-Id", "one", &id)?;
        Ok(self
            .program
            .find_any_line(|line| deny_code(line, &id))
            .await)
    }

    /// Sends SIGKILL and waits for the end.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.program.kill().await.map(drop)
    }

    /// Sends SIGTERM and expects exit code 0.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        expect::equal(
            "exit code of the server",
            Some(0),
            self.program.stop().await?.code(),
        )
    }
}

/// Returns a command of the program that writes all log messages as JSON.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = portcullis_scenarios::portcullis_command(program);
    command
        .args(["--log-format", "json"])
        .env("PORTCULLIS_LOG", "trace");
    command
}

/// Writes a configuration to `<folder>/<name>.toml` and returns the command that serves it.
pub(crate) fn serve(
    program: &Path,
    folder: &Path,
    name: &str,
    configuration: &str,
) -> anyhow::Result<Command> {
    let file = folder.join(format!("{name}.toml"));
    fs::write(&file, configuration)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    let mut command = command(program);
    command.args(["serve", "--config"]).arg(file);
    // One process at a time uses a state directory.
    command.env("STATE_DIRECTORY", folder.join(format!("{name}-state")));
    Ok(command)
}

/// Returns the reason code in the log line of a rejected request.
fn deny_code(line: &str, request: &str) -> Option<String> {
    // Most lines are of other requests. Parsing them all is slow.
    if !line.contains(request) {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    (line["request.id"] == request)
        .then(|| line["deny.code"].as_str().map(str::to_owned))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_code_is_read_from_the_line_of_its_request() {
        let line = r#"{"message":"request","request.id":"r1","deny.code":"token.expired"}"#;
        assert_eq!(deny_code(line, "r1").as_deref(), Some("token.expired"));
        assert_eq!(deny_code(line, "r2"), None);
        assert_eq!(
            deny_code(
                r#"{"message":"r1","request.id":"r2","deny.code":"token.expired"}"#,
                "r1"
            ),
            None
        );
        assert_eq!(deny_code(r#"{"request.id":"r1"}"#, "r1"), None);
    }
}
