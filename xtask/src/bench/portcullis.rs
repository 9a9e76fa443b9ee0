//! The server under test, configured as in production: RS256 tokens, sessions, a rule, the access line of each request.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tokio::time::sleep;

use super::{
    http::Connection,
    process::{self, Process},
};

pub(super) const PATH: &str = "/mcp";
const ISSUER: &str = "https://auth.example.com/realms/prod";
const BASE_URL: &str = "http://127.0.0.1:3000";

/// How long the server may take to become ready.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long access lines may stay in memory.
const LOG_PATIENCE: Duration = Duration::from_secs(1);
/// What every access line of an admitted request has.
const ACCESS_LINE: &str = " http.status=200 ";

/// What it takes to start it, and who may use it.
pub(super) struct Setup<'a> {
    program: &'a Path,
    configuration: PathBuf,
    log: PathBuf,
    address: SocketAddr,
    pub(super) token: String,
}

impl<'a> Setup<'a> {
    /// Writes keys, a token and a configuration into the folder.
    pub(super) fn prepare(
        program: &'a Path,
        issuer: &Path,
        folder: &Path,
        upstream: SocketAddr,
    ) -> anyhow::Result<Self> {
        let status = Command::new(issuer).args([ISSUER, &format!("{BASE_URL}{PATH}")]).arg(folder).status();
        ensure!(status.context("the issuer does not start")?.success(), "the issuer failed");
        let address = process::free_address()?;
        let configuration = folder.join("portcullis.toml");
        let keys = folder.join("jwks.json");
        fs::write(
            &configuration,
            format!(
                r#"
                listen = "{address}"
                base_url = "{BASE_URL}"
                workers = 2

                [[issuer]]
                issuer = "{ISSUER}"
                jwks_file = "{keys}"

                [[resource]]
                endpoint = "{PATH}"
                scopes_supported = ["mcp:tools", "mcp:admin"]
                required_scopes = ["mcp:tools"]
                upstream = {{ http = "http://{upstream}{PATH}" }}

                [[resource.rule]]
                method = "tools/call"
                name = "admin_*"
                scopes = ["mcp:admin"]
                "#,
                keys = keys.display(),
            ),
        )?;
        let token = fs::read_to_string(folder.join("token"))?;
        Ok(Self { program, configuration, log: folder.join("access.log"), address, token })
    }

    /// Starts it, and tells how long it took until it was ready for requests.
    pub(super) async fn start(&self) -> anyhow::Result<(Process, Duration)> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(self.program);
        command.arg("serve").arg("--config").arg(&self.configuration);
        // With it, every invalid signature costs a walk through the stack: josekit's errors take one along.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        command.env_remove("PORTCULLIS_LOG").stdout(Stdio::null()).stderr(log);
        let started = Instant::now();
        let mut process = Process::start(&mut command, self.address)?;
        let log = || fs::read_to_string(&self.log).unwrap_or_default();
        drop(process.listening().await.with_context(log)?);
        let mut connection = Connection::open(self.address).await?;
        while connection.get("/readyz").await?.status != 200 {
            if started.elapsed() > PATIENCE {
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

    /// Forgets the access lines so far.
    pub(super) fn clear_log(&self) -> anyhow::Result<()> {
        Ok(File::options().write(true).open(&self.log)?.set_len(0)?)
    }

    /// Waits for the access lines of so many requests since the log was cleared, and tells how many never came: the
    /// server drops lines rather than wait for a log that is too slow.
    ///
    /// # Errors
    /// When there are more lines than requests.
    pub(super) async fn lines_missing(&self, requests: usize) -> anyhow::Result<usize> {
        let (mut found, mut grew) = (0, Instant::now());
        while found < requests && grew.elapsed() < LOG_PATIENCE {
            sleep(Duration::from_millis(20)).await;
            let lines = BufReader::new(File::open(&self.log)?).lines();
            let now = lines.map_while(Result::ok).filter(|line| line.contains(ACCESS_LINE)).count();
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
