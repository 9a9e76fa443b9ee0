//! `portcullis serve`: one process, and what its log tells.

use std::{env, net::SocketAddr, path::Path, process::Command};

use anyhow::Context as _;
use http::{HeaderMap, StatusCode};
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use serde_json::Value;
use url::Url;

use super::{expect, program::Program};

/// A running server.
pub(crate) struct Server {
    program: Program,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts what [`command`] made, and waits until it listens.
    ///
    /// # Errors
    /// When it ends before it listens.
    pub(crate) async fn start(name: impl Into<String>, command: &mut Command, folder: &Path) -> anyhow::Result<Self> {
        let mut program = Program::start(name, command, folder)?;
        let address = program.says(listening).await?;
        let address = address.parse().with_context(|| format!("{address} is no address"))?;
        Ok(Self { program, address })
    }

    /// Waits until its issuers are usable.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        let readiness = Url::parse(&format!("http://{}/readyz", self.address))?;
        let fetch = HttpFetch::new(Default::default())?;
        loop {
            let answer = fetch.fetch(FetchRequest::get(readiness.clone(), UrlPolicy::Operator)).await?;
            if answer.status == StatusCode::OK {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Waits for the line that tells why the request that got these headers was refused, and gives the code.
    pub(crate) async fn refusal(&self, headers: &HeaderMap) -> anyhow::Result<String> {
        let id = expect::header(headers, "x-request-id").to_owned();
        expect::that(!id.is_empty(), "X-Request-Id", "one", &id)?;
        Ok(self.program.wrote(|line| denial(line, &id)).await)
    }

    /// Asks it to end, and expects that it does so in order.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        expect::equal("exit code of the server", Some(0), self.program.stop().await?.code())
    }
}

/// The program, with all that it can log, and with nothing of it configured by this process's environment.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PORTCULLIS_")) {
        command.env_remove(name);
    }
    command.args(["--log-format", "json"]).env("PORTCULLIS_LOG", "trace");
    command
}

/// The address in the log line that tells it.
fn listening(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    (line["message"] == "listening").then(|| line["listen.address"].as_str().map(str::to_owned)).flatten()
}

/// The code in a log line that tells of a request that was refused.
fn denial(line: &str, request: &str) -> Option<String> {
    // Most lines are of other requests; parsing them all takes long.
    if !line.contains(request) {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    (line["request.id"] == request).then(|| line["deny.code"].as_str().map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_line_that_tells_it() {
        let line = r#"{"level":"INFO","message":"listening","listen.address":"127.0.0.1:4000","workers":2}"#;
        assert_eq!(listening(line).as_deref(), Some("127.0.0.1:4000"));
        assert_eq!(listening(r#"{"message":"shutting down","listen.address":"127.0.0.1:4000"}"#), None);
        assert_eq!(listening("listening"), None);
    }

    #[test]
    fn a_code_is_read_from_its_requests_line() {
        let line = r#"{"message":"request","request.id":"r1","deny.code":"token.expired"}"#;
        assert_eq!(denial(line, "r1").as_deref(), Some("token.expired"));
        assert_eq!(denial(line, "r2"), None);
        assert_eq!(denial(r#"{"message":"r1","request.id":"r2","deny.code":"token.expired"}"#, "r1"), None);
        assert_eq!(denial(r#"{"request.id":"r1"}"#, "r1"), None);
    }
}
