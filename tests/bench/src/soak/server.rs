//! The server of the soak, with everything on: administrators, sessions, an audit trail that is
//! rotated, and reloads.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::{
    Administration, Request, Scratch, Signal, free_address, portcullis_command,
};
use tokio::time::{Instant, sleep};

use super::sample::{Sample, value};
use crate::{
    configuration::{BASE_URL, PATH},
    http::Connection,
    process::MeasuredProcess,
};

/// The line of the configuration that each reload replaces.
const REALM: &str = "realm = \"soak\"";
/// How often a failed request for the metrics is repeated.
const METRICS_RETRIES: usize = 3;
/// The maximum time of a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the server is asked whether it has reloaded.
const RELOAD_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The length of the end of the log that an error has.
const LOG_END: usize = 4_000;

/// A running server and its upstream. Both stop on drop.
pub(super) struct SoakServer {
    process: MeasuredProcess,
    admin: SocketAddr,
    file: PathBuf,
    configuration: String,
    log: PathBuf,
    reloads: u64,
    _upstream: MeasuredProcess,
}

impl SoakServer {
    /// Starts the server and its upstream, with all files in this folder.
    pub(super) async fn start(
        program: &Path,
        folder: &Scratch,
        issuer: &str,
    ) -> anyhow::Result<Self> {
        let mut upstream = Command::new(std::env::current_exe()?);
        let upstream = MeasuredProcess::announcing(upstream.arg("streams-upstream"))?;
        let address = free_address()?;
        let admin = free_address()?;
        let path = |name: &str| folder.path().join(name);
        let file = path("soak.toml");
        let log = path("server.log");
        fs::write(path("admin-token"), Administration::TOKEN)?;
        let configuration = configuration(
            &Addresses {
                server: address,
                admin,
                upstream: upstream.address,
            },
            issuer,
            folder,
        );
        fs::write(&file, &configuration)?;
        let mut server = portcullis_command(program);
        server
            .args(["serve", "--config"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?);
        let mut process = MeasuredProcess::start(&mut server, address)?;
        drop(
            process
                .listening()
                .await
                .with_context(|| fs::read_to_string(&log).unwrap_or_default())?,
        );
        Ok(Self {
            process,
            admin,
            file,
            configuration,
            log,
            reloads: 0,
            _upstream: upstream,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Returns the number of reloads.
    pub(super) fn reloads(&self) -> u64 {
        self.reloads
    }

    /// Reads what the server uses.
    pub(super) async fn sample(&self, elapsed: Duration) -> anyhow::Result<Sample> {
        Sample::read(
            &self.metrics().await?,
            elapsed,
            self.process.memory()?.anonymous,
        )
    }

    /// Reloads a valid configuration and an invalid one in turn, and waits until the server has
    /// counted it.
    pub(super) async fn reload(&mut self) -> anyhow::Result<()> {
        let (realm, counter) = if self.reloads.is_multiple_of(2) {
            (
                format!("realm = \"soak {}\"", self.reloads),
                "portcullis_reloads_total{result=\"accepted\"}",
            )
        } else {
            (
                "realms = \"soak\"".to_owned(),
                "portcullis_reloads_total{result=\"rejected\"}",
            )
        };
        fs::write(&self.file, self.configuration.replacen(REALM, &realm, 1))?;
        let expected = value(&self.metrics().await?, counter)? + 1.0;
        let deadline = Instant::now() + RELOAD_TIMEOUT;
        self.process.signal(Signal::HUP);
        self.reloads += 1;
        while value(&self.metrics().await?, counter)? < expected {
            ensure!(
                Instant::now() < deadline,
                "reload {} did not increment {counter}",
                self.reloads
            );
            sleep(RELOAD_POLL_INTERVAL).await;
        }
        Ok(())
    }

    pub(super) fn log_end(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_END)..]).into_owned()
    }

    /// Reads the metrics. On a busy machine, the listener may close a connection before the
    /// request, which is then repeated.
    async fn metrics(&self) -> anyhow::Result<String> {
        for _ in 0..METRICS_RETRIES {
            if let Ok(text) = self.read_metrics().await {
                return Ok(text);
            }
        }
        self.read_metrics().await
    }

    async fn read_metrics(&self) -> anyhow::Result<String> {
        let mut connection = Connection::open(self.admin).await?;
        let request = Request::new("GET", "/metrics").bearer(Administration::TOKEN);
        let response = connection.send(&request.to_bytes()).await?.ok()?;
        Ok(String::from_utf8(response.body.to_vec())?)
    }
}

/// The addresses in the configuration.
struct Addresses {
    server: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
}

/// Returns a configuration with everything on. Sessions and audit files are short-lived, so that
/// they do not grow.
fn configuration(addresses: &Addresses, issuer: &str, folder: &Scratch) -> String {
    let Addresses {
        server,
        admin,
        upstream,
    } = addresses;
    let folder = folder.as_str();
    format!(
        r#"listen = "{server}"
base_url = "{BASE_URL}"
workers = 2
state_dir = "{folder}/state"

[limits]
header_timeout = "2m"

[session]
idle_timeout = "2m"
lifetime = "4m"
max_per_owner = 4

[audit]
target = {{ file = "{folder}/audit.jsonl" }}
rotate_size = 1000000
keep = 2

[admin]
listen = "{admin}"
token = {{ file = "{folder}/admin-token" }}

[[issuer]]
issuer = "{issuer}"
jwks = {{ cooldown = "1s" }}
algorithms = ["ES256"]

[[resource]]
endpoint = "{PATH}"
{REALM}
required_scopes = ["mcp:tools"]
upstream = {{ http = "http://{upstream}/mcp" }}
"#
    )
}
