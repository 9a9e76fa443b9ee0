//! [`Setup`]: the server under test, its files and its requests.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use portcullis_scenarios::{free_address, portcullis_command};
use tokio::time::sleep;

use super::{
    configuration::{Configuration, PATH},
    http::Connection,
    process::MeasuredProcess,
};

/// The maximum time until the server is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum time until an access line is written.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);
/// The parts of every access line of an admitted request.
const ACCESS_LINE: [&str; 2] = [" http.path=/mcp ", " http.status=200 "];

/// The revision of sessions.
pub(super) const REVISION: &str = "2025-11-25";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
/// The measured message.
pub(super) const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":17,"b":25}}}"#;

/// The program, its configuration and a valid token.
pub(super) struct Setup<'a> {
    program: &'a Path,
    file: PathBuf,
    /// The access log, and the audit trail if there is one.
    written: [PathBuf; 2],
    address: SocketAddr,
    pub(super) token: String,
}

impl<'a> Setup<'a> {
    /// Writes the configuration into a folder that has the key set.
    pub(super) fn prepare(
        program: &'a Path,
        name: &str,
        configuration: Configuration,
        token: String,
        folder: &Path,
        upstream: SocketAddr,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let file = folder.join(format!("{name}.toml"));
        let audit = folder.join(format!("{name}.jsonl"));
        fs::write(&file, configuration.text(address, upstream, folder, &audit))?;
        let written = [folder.join(format!("{name}.log")), audit];
        Ok(Self {
            program,
            file,
            written,
            address,
            token,
        })
    }

    /// Starts the server and returns the time until it was ready.
    pub(super) async fn start(&self) -> anyhow::Result<(MeasuredProcess, Duration)> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = portcullis_command(self.program);
        command.arg("serve").arg("--config").arg(&self.file);
        // One process at a time uses a state directory.
        command.env("STATE_DIRECTORY", self.file.with_extension("state"));

        // With a backtrace, every invalid signature would walk the stack, because josekit's errors
        // contain one.
        command
            .env_remove("RUST_BACKTRACE")
            .env_remove("RUST_LIB_BACKTRACE");
        command.stdout(Stdio::null()).stderr(log);
        let started = Instant::now();
        let mut process = MeasuredProcess::start(&mut command, self.address)?;
        let log = || fs::read_to_string(self.log()).unwrap_or_default();
        drop(process.listening().await.with_context(log)?);
        let mut connection = Connection::open(self.address).await?;
        while connection.get("/readyz").await?.status != 200 {
            if started.elapsed() > READY_TIMEOUT {
                bail!("the server does not become ready:\n{}", log());
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok((process, started.elapsed()))
    }

    /// Opens a session and returns its identifier.
    pub(super) async fn open_session(&self) -> anyhow::Result<String> {
        open_session(self.address, &self.token).await
    }

    fn log(&self) -> &Path {
        &self.written[0]
    }

    /// Empties the log files.
    pub(super) fn clear_log(&self) -> anyhow::Result<()> {
        for file in self.written.iter().filter(|file| file.exists()) {
            File::options().write(true).open(file)?.set_len(0)?;
        }
        Ok(())
    }

    /// Waits for the access lines of this number of requests since the log was cleared, and returns
    /// how many are missing. The server drops lines if the log is too slow. Fails when there are
    /// more lines than requests.
    pub(super) async fn lines_missing(&self, requests: usize) -> anyhow::Result<usize> {
        let mut found = 0;
        let mut grew = Instant::now();
        while found < requests && grew.elapsed() < LOG_TIMEOUT {
            sleep(Duration::from_millis(20)).await;
            let lines = BufReader::new(File::open(self.log())?).lines();
            let now = lines
                .map_while(Result::ok)
                .filter(|line| ACCESS_LINE.iter().all(|part| line.contains(part)))
                .count();
            if now > found {
                (found, grew) = (now, Instant::now());
            }
        }
        requests
            .checked_sub(found)
            .with_context(|| format!("{found} access lines of {requests} requests"))
    }
}

/// Opens a session with this token and returns its identifier.
pub(super) async fn open_session(address: SocketAddr, token: &str) -> anyhow::Result<String> {
    let mut connection = Connection::open(address).await?;
    let response = connection
        .send(&request(token, None, INITIALIZE))
        .await?
        .ok()?;
    Ok(response
        .header("mcp-session-id")
        .context("no session was opened")?
        .to_owned())
}

/// Returns the measured request, the same for all variants: about 100 bytes of JSON with the token
/// and a session.
pub(super) fn tool_call(token: &str, session: &str) -> Vec<u8> {
    request(token, Some(session), CALL)
}

/// A POST as bytes, in this session if there is one.
fn request(token: &str, session: Option<&str>, body: &str) -> Vec<u8> {
    let session = session.map_or_else(String::new, |session| {
        format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {REVISION}\r\n")
    });
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n{session}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
