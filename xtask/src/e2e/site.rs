//! The two programs: the development authorization server, and the server in front of the demo tools.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, bail};
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use portcullis_metadata::Issuer;
use serde_json::Value;
use url::Url;

use super::{expect, program::Program};

/// What tokens must be allowed to do.
pub(super) const SCOPE: &str = "mcp:tools";
/// Whom the authorization server signs in when nobody is named.
pub(super) const USER: &str = "alice";

const ENDPOINT: &str = "/mcp";
const ANNOUNCEMENT: &str = "development authorization server: ";
/// Ports that are tried when another process takes the one chosen.
const TRIES: usize = 5;

/// Both programs, running.
pub(super) struct Site {
    idp: Program,
    server: Program,
    pub(super) issuer: Issuer,
    pub(super) endpoint: Url,
}

impl Site {
    /// Starts both, and waits until they are ready.
    pub(super) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut idp = command(program);
        idp.args(["idp", "--listen", "127.0.0.1:0", "--auto-consent"]);
        let mut idp = Program::start("idp", &mut idp, folder)?;
        let issuer = idp.says(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned)).await?;
        let issuer = Issuer::parse(&issuer)?;

        for _ in 0..TRIES {
            if let Some((server, address)) = start_server(program, folder, &issuer).await? {
                let base = Url::parse(&format!("http://{address}"))?;
                ready(&base).await?;
                return Ok(Self { idp, server, issuer, endpoint: base.join(ENDPOINT)? });
            }
        }
        bail!("each of {TRIES} ports was taken by another process")
    }

    /// Asks both to end, and expects that they do so in order.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        for (what, program) in [("the server", &mut self.server), ("the authorization server", &mut self.idp)] {
            expect::equal(&format!("exit code of {what}"), Some(0), program.stop().await?.code())?;
        }
        Ok(())
    }
}

/// Starts the server on a port that was free a moment ago; none when it no longer was.
async fn start_server(program: &Path, folder: &Path, issuer: &Issuer) -> anyhow::Result<Option<(Program, SocketAddr)>> {
    let address = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?;
    let file = folder.join("portcullis.toml");
    fs::write(&file, configuration(address, issuer))?;
    let mut server = Program::start("serve", command(program).arg("serve").arg("--config").arg(&file), folder)?;
    match server.says(listening).await {
        Ok(listening) => {
            expect::equal("the address that is listened on", address.to_string(), listening)?;
            Ok(Some((server, address)))
        }
        Err(_) if server.written().contains("cannot listen on") => Ok(None),
        Err(error) => Err(error),
    }
}

fn configuration(address: SocketAddr, issuer: &Issuer) -> String {
    format!(
        r#"
listen = "{address}"
base_url = "http://{address}"

[[issuer]]
issuer = "{issuer}"

[[resource]]
endpoint = "{ENDPOINT}"
scopes_supported = ["{SCOPE}"]
required_scopes = ["{SCOPE}"]
upstream = "demo"
"#
    )
}

/// The address in the log line that tells it.
fn listening(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    (line["message"] == "listening").then(|| line["listen.address"].as_str().map(str::to_owned)).flatten()
}

/// Waits until the issuer's keys are there.
async fn ready(base: &Url) -> anyhow::Result<()> {
    let fetch = HttpFetch::new(Default::default())?;
    loop {
        let answer = fetch.fetch(FetchRequest::get(base.join("/readyz")?, UrlPolicy::Operator)).await?;
        if answer.status == StatusCode::OK {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The program, with all that it can log, and with nothing of it configured by this process's environment.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PORTCULLIS_")) {
        command.env_remove(name);
    }
    command.args(["--log-format", "json"]).env("PORTCULLIS_LOG", "trace");
    command
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
}
