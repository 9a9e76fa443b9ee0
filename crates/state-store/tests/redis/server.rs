use std::{
    io::{self, ErrorKind},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use portcullis_testkit::ReservedPort;
use tempfile::TempDir;

use super::TIMEOUT;

/// A `redis-server`. It is killed when this is dropped.
pub(super) struct Redis {
    port: ReservedPort,
    /// The directory of a server with persistence.
    directory: Option<TempDir>,
    process: Child,
}

impl Redis {
    /// Starts a server without persistence. Returns `None` if it is not installed.
    pub(super) fn start() -> Option<Self> {
        Self::start_in(None)
    }

    /// Starts a server that answers a change after it is on disk.
    pub(super) fn start_durable() -> Option<Self> {
        Self::start_in(Some(tempfile::tempdir().unwrap()))
    }

    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn start_in(directory: Option<TempDir>) -> Option<Self> {
        let port = ReservedPort::new();
        match Self::run(port.port(), directory.as_ref()) {
            Ok(process) => Some(Self {
                port,
                directory,
                process,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED: redis-server is not installed");
                None
            }
            Err(error) => panic!("redis-server cannot be started: {error}"),
        }
    }

    /// Starts `redis-server` and waits until it answers.
    fn run(port: u16, directory: Option<&TempDir>) -> io::Result<Child> {
        let mut command = Command::new("redis-server");
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
        ]);
        match directory {
            Some(directory) => command
                .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
                .arg(directory.path()),
            None => command.args(["--appendonly", "no"]),
        };
        let process = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let started = Instant::now();
        while run_command(port, &["PING"]) != "PONG\n" {
            assert!(
                started.elapsed() < TIMEOUT,
                "redis-server does not answer on port {port}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    pub(super) fn port(&self) -> u16 {
        self.port.port()
    }

    pub(super) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Executes a command and returns its output.
    pub(super) fn command(&self, arguments: &[&str]) -> String {
        run_command(self.port(), arguments).trim().to_owned()
    }

    /// Starts the server again, with what it has on disk.
    pub(super) fn restart(&mut self) {
        self.process = Self::run(self.port(), self.directory.as_ref()).unwrap();
    }
}

/// Executes a command with `redis-cli` and returns its output.
fn run_command(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string()])
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
