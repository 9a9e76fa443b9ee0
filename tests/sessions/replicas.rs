//! Replicas that share their sessions through a real `redis-server`.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use portcullis_scenarios::{
    Deployment, HttpResponse, INITIALIZE, Portcullis, Process, Request, Scratch, Signal, TIMEOUT, free_address,
};
use tokio::{net::TcpStream, time::sleep};

const KEY: &str = "the-common-key-0123456789abcdef0123456";
/// The maximum time until a replica is ready: the lease and a margin for a busy machine.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long counted requests may take to the other replicas: the interval, and some more on a loaded machine.
const LIMIT_EXCHANGE: Duration = Duration::from_secs(2);

/// A `redis-server` without persistence.
struct Redis {
    address: SocketAddr,
    process: Process,
    folder: Scratch,
}

impl Redis {
    /// Starts a server. If the program is not installed, prints a note and returns `None`.
    #[expect(clippy::print_stderr, reason = "a skipped scenario prints a note")]
    async fn start() -> Option<Self> {
        let is_installed = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !is_installed {
            eprintln!("SKIPPED: redis-server is not installed");
            return None;
        }
        let (address, folder) = (free_address().unwrap(), Scratch::folder("redis"));
        let process = Self::run(address, &folder).await;
        Some(Self { address, process, folder })
    }

    async fn run(address: SocketAddr, folder: &Scratch) -> Process {
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no", "--dir"]);
        command.arg(folder.as_str()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::start("redis-server", &mut command).unwrap();
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            assert!(started.elapsed() < TIMEOUT, "redis-server does not listen on {address}");
            sleep(Duration::from_millis(10)).await;
        }
        process
    }

    async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    async fn restart_empty(&mut self) {
        self.process = Self::run(self.address, &self.folder).await;
    }
}

/// A deployment, and further programs with its configuration.
struct Replicas {
    deployment: Deployment,
    others: Vec<Portcullis>,
    token: String,
    _keys: Scratch,
}

impl Replicas {
    async fn start(redis: &Redis, count: usize, more: &str) -> Self {
        let keys = Scratch::file("session-keys", KEY);
        let tables = format!(
            "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]\n[shared]\nredis = \"redis://{}\"\n{more}",
            keys.as_str(),
            redis.address
        );
        let deployment = Deployment::builder().tables(tables).start().await;
        let token = deployment.good_token();
        let mut replicas = Self { deployment, others: Vec::new(), token, _keys: keys };
        while replicas.all().count() < count {
            replicas.add().await;
        }
        for replica in replicas.all() {
            wait_until_ready(replica).await;
        }
        replicas
    }

    /// Starts one more replica and returns its number.
    async fn add(&mut self) -> usize {
        self.others.push(self.deployment.replica().await);
        self.others.len()
    }

    fn all(&self) -> impl Iterator<Item = &Portcullis> {
        [&self.deployment.portcullis].into_iter().chain(&self.others)
    }

    fn replica(&self, number: usize) -> &Portcullis {
        self.all().nth(number).unwrap()
    }

    async fn open(&self, number: usize) -> String {
        let initialize = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&self.token);
        let response = initialize.send(self.replica(number).address()).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.header("mcp-session-id").unwrap().to_owned()
    }

    async fn echo(&self, number: usize, session: &str) -> HttpResponse {
        let echo = Request::echo(Deployment::ENDPOINT, &self.token, session);
        echo.send(self.replica(number).address()).await
    }

    async fn delete(&self, number: usize, session: &str) -> HttpResponse {
        let delete = Request::new("DELETE", Deployment::ENDPOINT).bearer(&self.token).session(session);
        delete.send(self.replica(number).address()).await
    }
}

async fn readiness(replica: &Portcullis) -> HttpResponse {
    Request::new("GET", "/readyz").send(replica.address()).await
}

/// Waits until a replica has the ended sessions of all others.
async fn wait_until_ready(replica: &Portcullis) {
    wait_for_state(replica, "complete").await;
    assert_eq!(readiness(replica).await.status, 200);
}

async fn wait_for_state(replica: &Portcullis, state: &str) {
    let started = Instant::now();
    while readiness(replica).await.json()["shared"]["redis"] != state {
        assert!(started.elapsed() < JOIN_TIMEOUT, "{:?}", readiness(replica).await);
        sleep(Duration::from_millis(20)).await;
    }
}

/// E13: replicas continue each other's sessions. After a confirmed end, all replicas reject the session, also those that have it
/// in their tables.
#[tokio::test]
async fn sessions_continue_and_end_on_all() {
    let Some(redis) = Redis::start().await else { return };
    let replicas = Replicas::start(&redis, 2, "").await;
    for round in 0..20 {
        let (here, there) = (round % 2, (round + 1) % 2);
        let session = replicas.open(here).await;
        if round % 3 > 0 {
            assert_eq!(replicas.echo(there, &session).await.status, 200);
        }
        assert_eq!(replicas.delete(here, &session).await.status, 200);
        replicas.echo(there, &session).await.assert_rpc_error(404, -32000);
        assert_eq!(replicas.delete(there, &session).await.status, 404);
    }
}

/// E13: after Redis was killed and restarted empty, ended sessions stay ended everywhere, a fresh replica does not accept them,
/// and the other sessions continue.
#[tokio::test]
async fn redis_restarts_without_data() {
    let Some(mut redis) = Redis::start().await else { return };
    let mut replicas = Replicas::start(&redis, 2, "").await;
    let (active, ended, unused) = (replicas.open(0).await, replicas.open(0).await, replicas.open(1).await);
    assert_eq!(replicas.delete(1, &ended).await.status, 200);

    redis.kill().await;
    redis.restart_empty().await;
    let fresh = replicas.add().await;
    let started = Instant::now();
    // Before it has the ended sessions, it accepts none of these sessions.
    while started.elapsed() < Duration::from_secs(8) {
        let response = replicas.echo(fresh, &ended).await;
        assert!([503, 404].contains(&response.status), "{response:?}");
        assert_eq!(replicas.echo(0, &active).await.status, 200, "known sessions continue");
        replicas.echo(0, &ended).await.assert_rpc_error(404, -32000);
        sleep(Duration::from_millis(50)).await;
    }
    for replica in replicas.all() {
        wait_until_ready(replica).await;
    }
    replicas.echo(fresh, &ended).await.assert_rpc_error(404, -32000);
    for session in [&active, &unused] {
        assert_eq!(replicas.echo(fresh, session).await.status, 200);
    }
    assert_eq!(replicas.delete(0, &active).await.status, 200, "ends are confirmed again");
    replicas.echo(fresh, &active).await.assert_rpc_error(404, -32000);
}

/// E13: while Redis is unreachable, known sessions continue, and an end takes effect at its replica without a
/// confirmation. When Redis is reachable again, it takes effect at all replicas. A replica started meanwhile accepts no
/// identifiers of others.
#[tokio::test]
async fn redis_is_unreachable() {
    let Some(mut redis) = Redis::start().await else { return };
    let mut replicas = Replicas::start(&redis, 2, "").await;
    let (active, ended) = (replicas.open(0).await, replicas.open(0).await);
    assert_eq!(replicas.echo(1, &ended).await.status, 200);
    redis.kill().await;
    wait_for_state(replicas.replica(0), "unreachable").await;
    assert_eq!(readiness(replicas.replica(0)).await.status, 200, "it continues its sessions");
    replicas.replica(0).logged("redis cannot be used", |line| line["level"] == "ERROR").await;

    assert_eq!(replicas.echo(0, &active).await.status, 200);
    assert_eq!(replicas.echo(0, &replicas.open(0).await).await.status, 200);
    let response = replicas.delete(0, &ended).await;
    assert_eq!(response.status, 503, "{response:?}");
    replicas.replica(0).assert_denied(&response, "session.end_not_recorded").await;
    replicas.echo(0, &ended).await.assert_rpc_error(404, -32000);
    assert_eq!(replicas.echo(1, &ended).await.status, 200, "it was not confirmed");

    let fresh = replicas.add().await;
    assert_eq!(readiness(replicas.replica(fresh)).await.status, 503);
    let response = replicas.echo(fresh, &active).await;
    assert_eq!(response.status, 503, "{response:?}");
    replicas.replica(fresh).assert_denied(&response, "session.not_ready").await;

    redis.restart_empty().await;
    for replica in replicas.all() {
        wait_until_ready(replica).await;
    }
    for number in 0..=fresh {
        replicas.echo(number, &ended).await.assert_rpc_error(404, -32000);
        assert_eq!(replicas.echo(number, &active).await.status, 200);
    }
}

/// E13: with `strict`, all requests are rejected while Redis is unreachable, except the health checks.
#[tokio::test]
async fn strict_mode() {
    let Some(mut redis) = Redis::start().await else { return };
    let replicas = Replicas::start(&redis, 1, "strict = true").await;
    let session = replicas.open(0).await;
    assert_eq!(replicas.echo(0, &session).await.status, 200);
    redis.kill().await;
    wait_for_state(replicas.replica(0), "unreachable").await;
    let response = replicas.echo(0, &session).await;
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")), "{response:?}");
    replicas.replica(0).assert_denied(&response, "shared.unreachable").await;
    assert_eq!(readiness(replicas.replica(0)).await.status, 503);
    let healthy = Request::new("GET", "/healthz").send(replicas.replica(0).address()).await;
    assert_eq!(healthy.status, 200);
    redis.restart_empty().await;
    wait_until_ready(replicas.replica(0)).await;
    assert_eq!(replicas.echo(0, &session).await.status, 200);
}

/// E13: a rate limit counts the requests at all replicas.
#[tokio::test]
async fn rates_apply_to_all() {
    let Some(redis) = Redis::start().await else { return };
    let limits =
        "[limits]\nper_principal = { requests = 9, per = \"1h\" }\nper_address = { requests = 99, per = \"1h\" }";
    let replicas = Replicas::start(&redis, 2, limits).await;
    let session = replicas.open(0).await;
    for _ in 1..8 {
        assert_eq!(replicas.echo(0, &session).await.status, 200);
    }
    sleep(LIMIT_EXCHANGE).await;
    assert_eq!(replicas.echo(1, &session).await.status, 200, "one request is left");
    let response = replicas.echo(1, &session).await;
    assert_eq!(response.status, 429, "{response:?}");
    replicas.replica(1).assert_denied(&response, "limit.principal").await;
    sleep(LIMIT_EXCHANGE).await;
    assert_eq!(replicas.echo(0, &session).await.status, 429);
}

/// E13: a killed replica delays the confirmation of ends by at most its lease.
#[tokio::test]
async fn killed_replicas() {
    let Some(redis) = Redis::start().await else { return };
    let replicas = Replicas::start(&redis, 2, "").await;
    let session = replicas.open(0).await;
    assert_eq!(replicas.echo(1, &session).await.status, 200);
    replicas.replica(1).signal(Signal::KILL);
    assert_eq!(replicas.echo(0, &session).await.status, 200);
    assert_eq!(replicas.delete(0, &session).await.status, 200);
}
