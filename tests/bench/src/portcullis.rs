//! The server under test.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use portcullis_scenarios::{command, free_address};
use tokio::time::sleep;

use super::{flavour::Flavour, http::Connection, process::MeasuredProcess};

pub(super) const PATH: &str = "/mcp";
pub(super) const ISSUER: &str = "https://auth.example.com/realms/prod";
pub(super) const BASE_URL: &str = "http://127.0.0.1:3000";

/// How long the server may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long access lines may stay in memory.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);
/// What every access line of an admitted request has.
const ACCESS_LINE: [&str; 2] = [" http.path=/mcp ", " http.status=200 "];

/// What it takes to start it, and who may use it.
pub(super) struct Setup<'a> {
    program: &'a Path,
    configuration: PathBuf,
    /// The access log, and the audit trail where there is one.
    written: [PathBuf; 2],
    address: SocketAddr,
    pub(super) token: String,
}

impl<'a> Setup<'a> {
    /// Writes a configuration into a folder that has the key set.
    pub(super) fn prepare(
        program: &'a Path,
        name: &str,
        flavour: Flavour,
        token: String,
        folder: &Path,
        upstream: SocketAddr,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let configuration = folder.join(format!("{name}.toml"));
        let audit = folder.join(format!("{name}.jsonl"));
        fs::write(&configuration, flavour.configuration(address, upstream, folder, &audit))?;
        let written = [folder.join(format!("{name}.log")), audit];
        Ok(Self { program, configuration, written, address, token })
    }

    /// Starts it, and tells how long it took until it was ready for requests.
    pub(super) async fn start(&self) -> anyhow::Result<(MeasuredProcess, Duration)> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = command(self.program);
        command.arg("serve").arg("--config").arg(&self.configuration);
        // With it, every invalid signature costs a walk through the stack: josekit's errors take one along.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        command.stdout(Stdio::null()).stderr(log);
        let started = Instant::now();
        let mut process = MeasuredProcess::start(&mut command, self.address)?;
        let log = || fs::read_to_string(self.log()).unwrap_or_default();
        drop(process.listening().await.with_context(log)?);
        let mut connection = Connection::open(self.address).await?;
        while connection.get("/readyz").await?.status != 200 {
            if started.elapsed() > READY_TIMEOUT {
                bail!("it does not become ready:\n{}", log());
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok((process, started.elapsed()))
    }

    /// Opens a session and gives its identifier.
    pub(super) async fn open_session(&self) -> anyhow::Result<String> {
        const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let mut connection = Connection::open(self.address).await?;
        let answer = connection.exchange(&request(&self.token, None, INITIALIZE)).await?.ok()?;
        Ok(answer.header("mcp-session-id").context("no session was opened")?.to_owned())
    }

    fn log(&self) -> &Path {
        &self.written[0]
    }

    /// Forgets what was written so far.
    pub(super) fn clear_log(&self) -> anyhow::Result<()> {
        for file in self.written.iter().filter(|file| file.exists()) {
            File::options().write(true).open(file)?.set_len(0)?;
        }
        Ok(())
    }

    /// Waits for the access lines of so many requests since the log was cleared, and tells how many never came: the
    /// server drops lines rather than wait for a log that is too slow.
    ///
    /// # Errors
    /// When there are more lines than requests.
    pub(super) async fn lines_missing(&self, requests: usize) -> anyhow::Result<usize> {
        let (mut found, mut grew) = (0, Instant::now());
        while found < requests && grew.elapsed() < LOG_TIMEOUT {
            sleep(Duration::from_millis(20)).await;
            let lines = BufReader::new(File::open(self.log())?).lines();
            let now =
                lines.map_while(Result::ok).filter(|line| ACCESS_LINE.iter().all(|part| line.contains(part))).count();
            if now > found {
                (found, grew) = (now, Instant::now());
            }
        }
        requests.checked_sub(found).with_context(|| format!("{found} access lines of {requests} requests"))
    }
}

/// The measured request, the same for all variants: about 100 bytes of JSON with the token and a session.
pub(super) fn tool_call(token: &str, session: &str) -> Vec<u8> {
    const CALL: &str =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":17,"b":25}}}"#;
    request(token, Some(session), CALL)
}

fn request(token: &str, session: Option<&str>, body: &str) -> Vec<u8> {
    let session = session.map_or_else(String::new, |session| {
        format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
    });
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n{session}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
