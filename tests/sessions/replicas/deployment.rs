//! A `redis-server`, and replicas that use it.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use portcullis_scenarios::{
    Administration, Deployment, DeploymentBuilder, HttpResponse, INITIALIZE, Portcullis, Process,
    Request, ReservedPort, Scratch, TIMEOUT, is_full_run,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

const KEY: &str = "the-common-key-0123456789abcdef0123456";
/// The maximum time until a replica is ready: the lease and a margin for a busy machine.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// A `redis-server`.
pub(super) struct Redis {
    port: ReservedPort,
    /// Whether it answers a change after it is on disk. Otherwise it has no persistence.
    is_durable: bool,
    process: Process,
    folder: Scratch,
}

impl Redis {
    /// Starts a server without persistence. See [`start_with`](Self::start_with).
    pub(super) async fn start() -> Option<Self> {
        Self::start_with(false).await
    }

    /// Starts a server that answers a change after it is on disk. See
    /// [`start_with`](Self::start_with).
    pub(super) async fn start_durable() -> Option<Self> {
        Self::start_with(true).await
    }

    /// Starts a server. If the program is not installed, prints a note and returns `None`, except
    /// in a full run. Panics if the program is not installed in a full run.
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
    pub(super) async fn command(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.port.address()).await.unwrap();
        stream
            .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    pub(super) async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Starts a server again that has no persistence.
    pub(super) async fn restart_empty(&mut self) {
        assert!(!self.is_durable);
        self.restart().await;
    }

    /// Starts the server again, with what it has on disk.
    pub(super) async fn restart(&mut self) {
        self.process = Self::run(self.port.address(), &self.folder, self.is_durable).await;
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

/// A deployment, and further programs with its configuration.
pub(super) struct Replicas {
    pub(super) deployment: Deployment,
    others: Vec<Portcullis>,
    /// The listeners for administrators.
    pub(super) administrations: Vec<Administration>,
    pub(super) token: String,
    _keys: Scratch,
}

impl Replicas {
    /// Starts replicas. `more` follows the table `[shared]`.
    pub(super) async fn start(redis: &Redis, count: usize, more: &str) -> Self {
        Self::with(redis, count, "", more, Deployment::builder()).await
    }

    /// Starts replicas with lines of the table `[session]`, and the issuer, resource and upstream
    /// of a builder.
    pub(super) async fn with(
        redis: &Redis,
        count: usize,
        session: &str,
        more: &str,
        builder: DeploymentBuilder,
    ) -> Self {
        let keys = Scratch::file("session-keys", KEY);
        let administration = Administration::default();
        let tables = format!(
            "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]\n{session}\n{}\n[shared]\nredis = \"redis://{}\"\n{more}",
            keys.as_str(),
            administration.table(),
            redis.port.address()
        );
        let deployment = builder.tables(tables).start().await;
        let token = deployment.good_token();
        let administrations = vec![administration];
        let mut replicas = Self {
            deployment,
            others: Vec::new(),
            administrations,
            token,
            _keys: keys,
        };
        while replicas.all().count() < count {
            replicas.add().await;
        }
        for replica in replicas.all() {
            wait_until_ready(replica).await;
        }
        replicas
    }

    /// Starts one more replica and returns its number.
    pub(super) async fn add(&mut self) -> usize {
        let administration = Administration::default();
        let tables = [self.administrations[0].table(), administration.table()];
        let configuration = self
            .deployment
            .configuration()
            .replace(&tables[0], &tables[1]);
        self.others.push(Portcullis::serve(&configuration).await);
        self.administrations.push(administration);
        self.others.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Portcullis> {
        [&self.deployment.portcullis]
            .into_iter()
            .chain(&self.others)
    }

    pub(super) fn replica(&self, number: usize) -> &Portcullis {
        self.all().nth(number).unwrap()
    }

    pub(super) async fn open(&self, number: usize) -> String {
        let initialize = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&self.token);
        let response = initialize.send(self.replica(number).address()).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.header("mcp-session-id").unwrap().to_owned()
    }

    pub(super) async fn echo(&self, number: usize, session: &str) -> HttpResponse {
        let echo = Request::echo(Deployment::ENDPOINT, &self.token, session);
        echo.send(self.replica(number).address()).await
    }

    pub(super) async fn delete(&self, number: usize, session: &str) -> HttpResponse {
        let delete = Request::delete(Deployment::ENDPOINT, &self.token, session);
        delete.send(self.replica(number).address()).await
    }
}

pub(super) async fn readiness(replica: &Portcullis) -> HttpResponse {
    Request::new("GET", "/readyz").send(replica.address()).await
}

/// Waits until a replica has the ended sessions of all others.
pub(super) async fn wait_until_ready(replica: &Portcullis) {
    wait_for_state(replica, "complete").await;
    assert_eq!(readiness(replica).await.status, 200);
}

pub(super) async fn wait_for_state(replica: &Portcullis, state: &str) {
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
