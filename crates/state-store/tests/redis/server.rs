use std::{
    io::{self, ErrorKind},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::TIMEOUT;

/// A `redis-server` without persistence. It is killed when this is dropped.
pub(super) struct Redis {
    pub(super) port: u16,
    process: Child,
}

impl Redis {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub(super) fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        match Self::run(port) {
            Ok(process) => Some(Self { port, process }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED: redis-server is not installed");
                None
            }
            Err(error) => panic!("redis-server cannot be started: {error}"),
        }
    }

    /// Starts `redis-server` and waits until it answers.
    fn run(port: u16) -> io::Result<Child> {
        let mut command = Command::new("redis-server");
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let process = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Another process may have taken the port: only the answer of this one counts.
        let own_id = format!("process_id:{}\r\n", process.id());
        let started = Instant::now();
        while !run_command(port, &["INFO", "server"]).contains(&own_id) {
            assert!(
                started.elapsed() < TIMEOUT,
                "redis-server does not answer on port {port}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    pub(super) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Executes a command and returns its output.
    pub(super) fn command(&self, arguments: &[&str]) -> String {
        run_command(self.port, arguments).trim().to_owned()
    }

    pub(super) fn restart_empty(&mut self) {
        self.process = Self::run(self.port).unwrap();
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
