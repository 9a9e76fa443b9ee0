//! The programs of a run: `redis-server`, an MCP server, three replicas and nginx.

use std::{
    cell::{Cell, RefCell},
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

use anyhow::Context as _;
use portcullis_metadata::SystemClock;
use portcullis_scenarios::free_address;
use portcullis_testkit::TestIssuer;
use xtask::programs;

use super::{ENDPOINT, Environment, client::Client, tally::Tally};
use crate::{
    program::Program,
    server::{Server, serve},
};

/// The number of replicas.
pub(super) const REPLICAS: usize = 3;
const ISSUER: &str = "https://issuer.example";
/// The key of session identifiers, the same for all replicas.
const SESSION_KEY: &str = "the-key-of-all-replicas-0123456789abcdef";
const NGINX: &str = include_str!("nginx.conf");
/// The lifetime of a token, in seconds.
const TOKEN_LIFETIME: i64 = 24 * 60 * 60;

/// All programs. They are killed when this is dropped.
pub(super) struct Deployment {
    program: PathBuf,
    folder: PathBuf,
    test_issuer: TestIssuer,
    base_url: String,
    nginx: SocketAddr,
    redis: SocketAddr,
    addresses: Vec<SocketAddr>,
    configurations: Vec<String>,
    replicas: RefCell<Vec<Option<Server>>>,
    redis_program: RefCell<Option<Program>>,
    starts: Cell<usize>,
    nginx_program: RefCell<Option<Program>>,
    _upstream: Program,
}

/// Returns the name of a program that is not installed.
pub(super) fn missing_program() -> Option<&'static str> {
    ["redis-server", "nginx"]
        .into_iter()
        .find(|name| programs::find(name).is_none())
}

/// Returns a command for an installed program.
fn installed(name: &str) -> anyhow::Result<Command> {
    programs::find(name)
        .map(Command::new)
        .with_context(|| format!("{name} is not installed"))
}

impl Deployment {
    /// Starts everything, and waits until it listens. Fails when a program does not start.
    pub(super) async fn start(environment: &Environment<'_>) -> anyhow::Result<Self> {
        let folder = environment.folder;
        let nginx = free_address()?;
        let redis = free_address()?;
        let upstream = free_address()?;
        let addresses = (0..REPLICAS)
            .map(|_| free_address())
            .collect::<Result<Vec<_>, _>>()?;
        let base_url = format!("http://{nginx}");
        let test_issuer = TestIssuer::new(ISSUER).with_clock(SystemClock::new());
        fs::write(folder.join("jwks.json"), test_issuer.jwks_json())?;
        fs::write(folder.join("session-keys"), SESSION_KEY)?;
        let configuration =
            |address: &SocketAddr| configuration(folder, *address, &base_url, redis, upstream);
        let configurations = addresses.iter().map(configuration).collect();
        let mut command = Command::new(environment.upstream);
        command.env("PORT", upstream.port().to_string());
        let mut upstream_program = Program::start("upstream", &mut command, folder)?;
        upstream_program.wait_for_listener(upstream).await?;
        let deployment = Self {
            program: environment.program.to_owned(),
            folder: folder.to_owned(),
            test_issuer,
            base_url,
            nginx,
            redis,
            addresses,
            configurations,
            replicas: RefCell::new((0..REPLICAS).map(|_| None).collect()),
            redis_program: RefCell::new(None),
            starts: Cell::new(0),
            nginx_program: RefCell::new(None),
            _upstream: upstream_program,
        };
        deployment.start_redis().await?;
        for number in 0..REPLICAS {
            deployment.start_replica(number).await?;
        }
        deployment.start_nginx().await?;
        Ok(deployment)
    }

    /// Returns a client with a token for this subject.
    pub(super) fn client(&self, subject: &str, tally: &Rc<Tally>) -> anyhow::Result<Client> {
        let token = self
            .test_issuer
            .token()
            .audience(format!("{}{ENDPOINT}", self.base_url));
        let token = token
            .subject(subject)
            .scope("mcp:tools")
            .expires_in(TOKEN_LIFETIME)
            .sign();
        Ok(Client::new(token, self.nginx, &self.addresses, tally))
    }

    /// Returns the address of a replica.
    pub(super) fn replica(&self, number: usize) -> SocketAddr {
        self.addresses[number]
    }

    /// Starts a replica and waits until it is ready.
    pub(super) async fn start_replica(&self, number: usize) -> anyhow::Result<()> {
        self.starts.set(self.starts.get() + 1);
        let name = format!("replica-{number}-start-{}", self.starts.get());
        let mut command = serve(
            &self.program,
            &self.folder,
            &name,
            &self.configurations[number],
        )?;
        command.env("PORTCULLIS_LOG", "info");
        let server = Server::start(&name, &mut command, &self.folder).await?;
        server.ready().await?;
        self.replicas.borrow_mut()[number] = Some(server);
        Ok(())
    }

    /// Kills a replica without a chance to end its requests.
    pub(super) async fn kill_replica(&self, number: usize) -> anyhow::Result<()> {
        let replica = self.replicas.borrow_mut()[number].take();
        replica.context("the replica is not running")?.kill().await
    }

    /// Starts Redis without data, and waits until it listens.
    pub(super) async fn start_redis(&self) -> anyhow::Result<()> {
        let mut command = installed("redis-server")?;
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &self.redis.port().to_string(),
        ]);
        command
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.folder);
        let mut program = Program::start("redis", &mut command, &self.folder)?;
        program.wait_for_listener(self.redis).await?;
        *self.redis_program.borrow_mut() = Some(program);
        Ok(())
    }

    /// Kills Redis, which loses its data.
    pub(super) async fn kill_redis(&self) -> anyhow::Result<()> {
        let redis = self.redis_program.borrow_mut().take();
        redis
            .context("redis is not running")?
            .kill()
            .await
            .map(drop)
    }

    /// Starts nginx in front of all replicas, and waits until it listens.
    async fn start_nginx(&self) -> anyhow::Result<()> {
        let servers: Vec<_> = self
            .addresses
            .iter()
            .map(|address| format!("        server {address} max_fails=1 fail_timeout=1s;"))
            .collect();
        let configuration = NGINX
            .replace("{listen}", &self.nginx.to_string())
            .replace("{servers}", &servers.join("\n"))
            .replace("{folder}", &self.folder.display().to_string());
        let file = self.folder.join("nginx.conf");
        fs::write(&file, configuration)?;
        let mut command = installed("nginx")?;
        command
            .arg("-e")
            .arg(self.folder.join("nginx-error.log"))
            .arg("-p")
            .arg(&self.folder)
            .arg("-c")
            .arg(file);
        let mut nginx = Program::start("nginx", &mut command, &self.folder)?;
        nginx.wait_for_listener(self.nginx).await?;
        *self.nginx_program.borrow_mut() = Some(nginx);
        Ok(())
    }
}

/// Returns the configuration of a replica.
fn configuration(
    folder: &Path,
    address: SocketAddr,
    base_url: &str,
    redis: SocketAddr,
    upstream: SocketAddr,
) -> String {
    let folder = folder.display();
    format!(
        r#"
        listen = "{address}"
        base_url = "{base_url}"
        state_dir = "off"

        [[issuer]]
        issuer = "{ISSUER}"
        jwks_file = "{folder}/jwks.json"

        [[resource]]
        endpoint = "{ENDPOINT}"
        upstream = {{ http = "http://{upstream}/mcp" }}
        required_scopes = ["mcp:tools"]

        [session]
        keys = [{{ file = "{folder}/session-keys" }}]
        ended_status = 404

        [shared]
        redis = "redis://{redis}"
        "#
    )
}
