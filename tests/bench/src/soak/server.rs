//! The server of the soak, with everything on: administrators, sessions, an audit trail that is rotated, and reloads.

use std::{
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::{Administration, Request, Scratch, Signal, free_address, portcullis_command};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::{
    configuration::{BASE_URL, PATH},
    http::Connection,
    process::MeasuredProcess,
};

/// The line that valid and invalid reloads change.
const REALM: &str = "realm = \"soak\"";
/// How often a failed request for the metrics is repeated.
const METRICS_RETRIES: usize = 3;
/// The maximum time of a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);
/// The length of the end of the log that an error has.
const LOG_END: usize = 4_000;

/// The running server.
pub(super) struct SoakServer {
    process: MeasuredProcess,
    admin: SocketAddr,
    file: PathBuf,
    configuration: String,
    log: PathBuf,
    reloads: u64,
    _upstream: MeasuredProcess,
}

/// What the server used at one time.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Sample {
    /// The time since the start.
    pub(super) seconds: f64,
    /// Anonymous memory in bytes. Resident memory also has pages of the program's file, which the system reads and
    /// drops as it likes.
    pub(super) memory: f64,
    resident: f64,
    pub(super) descriptors: f64,
    pub(super) tasks: f64,
    sessions: f64,
    streams: f64,
}

impl SoakServer {
    /// Starts the server and its upstream, with all files in this folder.
    pub(super) async fn start(program: &Path, folder: &Scratch, issuer: &str) -> anyhow::Result<Self> {
        let mut upstream = Command::new(std::env::current_exe()?);
        let upstream = MeasuredProcess::announcing(upstream.arg("streams-upstream"))?;
        let (address, admin) = (free_address()?, free_address()?);
        let path = |name: &str| folder.path().join(name);
        let (file, log) = (path("soak.toml"), path("server.log"));
        let admin_token = path("admin-token");
        fs::write(&admin_token, Administration::TOKEN)?;
        let configuration = format!(
            "listen = \"{address}\"\nbase_url = \"{BASE_URL}\"\nworkers = 2\nstate_dir = \"{folder}/state\"\n\n\
             [limits]\nheader_timeout = \"2m\"\n\n[session]\nidle_timeout = \"2m\"\nlifetime = \"4m\"\nmax_per_owner = 4\n\n\
             [audit]\ntarget = {{ file = \"{folder}/audit.jsonl\" }}\nrotate_size = 1000000\nkeep = 2\n\n\
             [admin]\nlisten = \"{admin}\"\ntoken = {{ file = {admin_token:?} }}\n\n\
             [[issuer]]\nissuer = \"{issuer}\"\njwks = {{ cooldown = \"1s\" }}\nalgorithms = [\"ES256\"]\n\n\
             [[resource]]\nendpoint = \"{PATH}\"\n{REALM}\nrequired_scopes = [\"mcp:tools\"]\n\
             upstream = {{ http = \"http://{upstream}/mcp\" }}\n",
            folder = folder.as_str(),
            upstream = upstream.address,
        );
        fs::write(&file, &configuration)?;
        let mut server = portcullis_command(program);
        server.args(["serve", "--config"]).arg(&file).stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        let mut process = MeasuredProcess::start(&mut server, address)?;
        drop(process.listening().await.with_context(|| fs::read_to_string(&log).unwrap_or_default())?);
        Ok(Self { process, admin, file, configuration, log, reloads: 0, _upstream: upstream })
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
        let text = self.metrics().await?;
        Ok(Sample {
            seconds: elapsed.as_secs_f64(),
            memory: self.process.memory()?.anonymous as f64,
            resident: value(&text, "process_resident_memory_bytes")?,
            descriptors: value(&text, "process_open_fds")?,
            tasks: value(&text, "portcullis_tasks")?,
            sessions: value(&text, "portcullis_sessions")?,
            streams: value(&text, "portcullis_streams")?,
        })
    }

    /// Reloads a valid configuration and an invalid one in turn, and waits until the server has counted it.
    pub(super) async fn reload(&mut self) -> anyhow::Result<()> {
        let is_valid = self.reloads.is_multiple_of(2);
        let line = if is_valid { format!("realm = \"soak {}\"", self.reloads) } else { "realms = \"soak\"".to_owned() };
        fs::write(&self.file, self.configuration.replacen(REALM, &line, 1))?;
        let count =
            format!("portcullis_reloads_total{{result=\"{}\"}}", if is_valid { "accepted" } else { "rejected" });
        let expected = value(&self.metrics().await?, &count)? + 1.0;
        let deadline = Instant::now() + RELOAD_TIMEOUT;
        self.process.signal(Signal::HUP);
        self.reloads += 1;
        while value(&self.metrics().await?, &count)? < expected {
            ensure!(Instant::now() < deadline, "reload {} has not become {count}", self.reloads);
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Returns the end of the log.
    pub(super) fn log_end(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_END)..]).into_owned()
    }

    /// Reads the metrics. On a busy machine, the listener may close a connection before the request, which is then
    /// repeated.
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

/// Returns the value of a sample of the metrics.
fn value(text: &str, sample: &str) -> anyhow::Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("the metrics have no {sample}; the program is too old"))?.parse()?)
}

#[cfg(test)]
impl Sample {
    /// Returns a sample without sessions and streams.
    pub(super) fn new(seconds: f64, memory: f64, descriptors: f64, tasks: f64) -> Self {
        Self { seconds, memory, resident: 0.0, descriptors, tasks, sessions: 0.0, streams: 0.0 }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptors, tasks, sessions, streams, .. } = self;
        let (memory, resident) = (self.memory / 1e6, self.resident / 1e6);
        write!(
            f,
            "{memory:.1} MB anonymous, {resident:.1} MB resident, {descriptors} descriptors, {tasks} tasks, {sessions} sessions, {streams} streams"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_name() {
        let text = "# HELP a b\na_max 7\na{x=\"y\"} 3\na 2\n";
        assert_eq!((value(text, "a").unwrap(), value(text, "a{x=\"y\"}").unwrap()), (2.0, 3.0));
        assert!(value(text, "b").is_err());
    }
}
