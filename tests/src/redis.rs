//! [`Redis`]: a `redis-server`, and whether replicas can use it.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

use crate::{
    HttpResponse, Portcullis, Process, Request, ReservedPort, Scratch, TIMEOUT, is_full_run,
};

/// The maximum time until a replica is ready: the lease and a margin for a busy machine.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// A `redis-server`.
pub struct Redis {
    port: ReservedPort,
    /// Whether it answers a change after it is on disk. Otherwise it has no persistence.
    is_durable: bool,
    process: Process,
    folder: Scratch,
}

impl Redis {
    /// Starts a server without persistence. If the program is not installed, prints a note and
    /// returns `None`, except in a full run.
    ///
    /// # Panics
    /// Panics if it does not start, or is not installed in a full run.
    pub async fn start() -> Option<Self> {
        Self::start_with(false).await
    }

    /// As [`start`](Self::start), a server that answers a change after it is on disk.
    ///
    /// # Panics
    /// Panics if it does not start, or is not installed in a full run.
    pub async fn start_durable() -> Option<Self> {
        Self::start_with(true).await
    }

    #[expect(clippy::print_stderr, reason = "a skipped scenario prints a note")]
    async fn start_with(is_durable: bool) -> Option<Self> {
        let is_installed = Command::new("redis-server")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok();
        if !is_installed {
            assert!(!is_full_run(), "redis-server is not installed");
            eprintln!("SKIPPED: redis-server is not installed");
            return None;
        }
        let port = ReservedPort::new();
        let folder = Scratch::folder("redis");
        let process = Self::run(port.address(), &folder, is_durable).await;
        Some(Self {
            port,
            is_durable,
            process,
            folder,
        })
    }

    /// Starts `redis-server` and waits until it listens.
    async fn run(address: SocketAddr, folder: &Scratch, is_durable: bool) -> Process {
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port,
            "--save",
            "",
            "--appendfsync",
            "always",
            "--appendonly",
            if is_durable { "yes" } else { "no" },
            "--dir",
        ]);
        command
            .arg(folder.as_str())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start("redis-server", &mut command).unwrap();
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            assert!(
                started.elapsed() < TIMEOUT,
                "redis-server does not listen on {address}"
            );
            sleep(Duration::from_millis(10)).await;
        }
        process
    }

    /// Sends a command and returns its response.
    ///
    /// # Panics
    /// Panics if it does not run.
    pub async fn command(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.port.address()).await.unwrap();
        stream
            .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    /// Kills the server with SIGKILL.
    ///
    /// # Panics
    /// Panics if it does not run.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Starts a server again that has no persistence.
    ///
    /// # Panics
    /// Panics if it has persistence, or does not start.
    pub async fn restart_empty(&mut self) {
        assert!(!self.is_durable);
        self.restart().await;
    }

    /// Starts the server again, with what it has on disk.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn restart(&mut self) {
        self.process = Self::run(self.port.address(), &self.folder, self.is_durable).await;
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

/// Returns the response of a server that says whether it is ready.
pub async fn readiness(replica: &Portcullis) -> HttpResponse {
    Request::new("GET", "/readyz").send(replica.address()).await
}

/// Waits until a replica has the ended sessions of all others.
///
/// # Panics
/// Panics if that takes too long.
pub async fn wait_until_ready(replica: &Portcullis) {
    wait_for_state(replica, "complete").await;
    assert_eq!(readiness(replica).await.status, 200);
}

/// Waits until a replica reports this state of its connection to Redis.
///
/// # Panics
/// Panics if that takes too long.
pub async fn wait_for_state(replica: &Portcullis, state: &str) {
    let started = Instant::now();
    while readiness(replica).await.json()["shared"]["redis"] != state {
        assert!(
            started.elapsed() < JOIN_TIMEOUT,
            "{:?}",
            readiness(replica).await
        );
        sleep(Duration::from_millis(20)).await;
    }
}
