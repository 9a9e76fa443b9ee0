//! [`CountedServer`]: the server under callgrind.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use portcullis_scenarios::{Process, portcullis_command};
use tokio::time::{Instant, sleep, timeout};

use super::{Programs, profile::Profile};
use crate::http::Connection;

/// The file that callgrind writes when the server ends. Dumps are numbered.
const OUTPUT: &str = "callgrind.out";
/// The maximum time until the server is ready. It is about fifty times slower than without
/// callgrind.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The server writes its log within 100 ms after a response.
const IDLE_AFTER: Duration = Duration::from_millis(250);
/// The maximum time of a dump. It takes 0.3 s; where processes may not be traced, it waits for the
/// next timer.
const DUMP_TIMEOUT: Duration = Duration::from_secs(60);

/// The server under callgrind, until it is dropped.
pub(super) struct CountedServer<'a> {
    programs: &'a Programs,
    process: Process,
    folder: &'a Path,
    log: PathBuf,
    dumps: u32,
}

impl<'a> CountedServer<'a> {
    /// Starts the server with the configuration in this folder, and waits until it is ready. Fails
    /// when the server does not become ready.
    pub(super) async fn start(
        programs: &'a Programs,
        folder: &'a Path,
        configuration: &Path,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let log = folder.join("server.log");
        let mut command = command(programs, &folder.join(OUTPUT));
        command.arg("serve").arg("--config").arg(configuration);
        command.env("STATE_DIRECTORY", configuration.with_extension("state"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let process = Process::start("valgrind", &mut command)?;
        let mut server = Self {
            programs,
            process,
            folder,
            log,
            dumps: 0,
        };
        let started = Instant::now();
        while !is_ready(address).await {
            if server.process.try_wait()?.is_some() || started.elapsed() > READY_TIMEOUT {
                bail!(
                    "the server does not become ready under valgrind:\n{}",
                    server.log()
                );
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(server)
    }

    /// Waits until the server is idle, and returns what it has executed since the last call. Fails
    /// when callgrind does not write its counters.
    pub(super) async fn dump(&mut self) -> anyhow::Result<Profile> {
        sleep(IDLE_AFTER).await;
        let mut vgdb = tokio::process::Command::new(&self.programs.vgdb);
        vgdb.arg(format!("--pid={}", self.process.id()))
            .arg("dump")
            .kill_on_drop(true);
        let output = timeout(DUMP_TIMEOUT, vgdb.output())
            .await
            .context("vgdb does not end")??;
        ensure!(
            output.status.success(),
            "vgdb failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.dumps += 1;
        let file = self.last_dump();
        let text = fs::read_to_string(&file)
            .with_context(|| format!("callgrind did not write {}", file.display()))?;
        Ok(Profile::parse(&text))
    }

    /// Copies what the last call of [`Self::dump`] read.
    pub(super) fn copy_last_dump(&self, to: &Path) -> anyhow::Result<()> {
        fs::copy(self.last_dump(), to)
            .with_context(|| format!("{} cannot be written", to.display()))
            .map(drop)
    }

    fn last_dump(&self) -> PathBuf {
        self.folder.join(format!("{OUTPUT}.{}", self.dumps))
    }

    /// Returns the messages of the server and of valgrind.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Returns a command that runs the server under callgrind.
fn command(programs: &Programs, output: &Path) -> Command {
    let mut command = portcullis_command(&programs.valgrind);
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(output);
    command
        .args(["--tool=callgrind", "--compress-strings=no", "--quiet"])
        .arg(file)
        .arg(&programs.server);
    // With a backtrace, a rejected token would walk the stack, because josekit's errors contain
    // one.
    command
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUST_LIB_BACKTRACE");
    // With one worker, every request finds what the one before it left.
    command.env("PORTCULLIS_WORKERS", "1");
    command
}

async fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::open(address).await else {
        return false;
    };
    connection
        .get("/readyz")
        .await
        .is_ok_and(|response| response.status == 200)
}
