//! The servers of all variants, which run side by side in front of one upstream.

use std::{env, fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::Scratch;

use super::{
    configuration::{ADMIN_TOKEN_FILE, Configuration},
    figures::{Sample, Starts},
    hostile::letters,
    http::Connection,
    issuer::sign_token,
    load, nginx,
    portcullis::{BASE_URL, ISSUER, PATH, Setup, tool_call},
    process::{MeasuredProcess, Memory},
    request_template::RequestTemplate,
};

/// The number of starts whose duration is measured.
const STARTS: usize = 5;

/// The names of the variants. Their positions are the numbers that [`Servers::measure`] takes.
pub(super) const VARIANTS: [&str; 11] = [
    "upstream alone",
    "nginx",
    "bare hyper proxy",
    "portcullis",
    "all on",
    "metrics",
    "metrics and traces",
    "introspection, hit",
    "introspection, miss",
    "baseline",
    "baseline, all on",
];
const UPSTREAM: usize = 0;
/// The variant with which the others are compared.
pub(super) const NGINX: usize = 1;
const HYPER: usize = 2;
pub(super) const PORTCULLIS: usize = 3;
pub(super) const ALL_ON: usize = 4;
pub(super) const METRICS: usize = 5;
pub(super) const TRACES: usize = 6;
const HIT: usize = 7;
const MISS: usize = 8;
pub(super) const BASELINE: usize = 9;
pub(super) const BASELINE_ALL_ON: usize = 10;

/// An opaque token. The characters at [`LETTERS_AT`] are replaced to create other tokens.
const OPAQUE: &str = "2YotnFZFEjr1zCsicMWpAA.00000000000.tGzv3JOkF0XG5Qx2TlKWIA";
const LETTERS_AT: usize = 23;

/// The running servers. They are stopped on drop.
pub(super) struct Servers<'a> {
    upstream: MeasuredProcess,
    nginx: MeasuredProcess,
    proxy: MeasuredProcess,
    standard: Server<'a>,
    all_on: Server<'a>,
    metrics: Server<'a>,
    traces: Server<'a>,
    introspecting: Server<'a>,
    /// The other program, with the standard configuration and with all features.
    baseline: Option<[Server<'a>; 2]>,
    /// A call with a different token for each number.
    unknown_token: RequestTemplate,
    pub(super) starts: Starts,
    /// The issuer and the receiver of spans.
    _others: [MeasuredProcess; 2],
    _folder: Scratch,
}

/// A server under test and its request.
struct Server<'a> {
    setup: Setup<'a>,
    process: MeasuredProcess,
    request: RequestTemplate,
}

impl<'a> Servers<'a> {
    pub(super) async fn start(portcullis: &'a Path, baseline: Option<&'a Path>) -> anyhow::Result<Self> {
        let folder = Scratch::folder("bench");
        let this = env::current_exe()?;
        let upstream = MeasuredProcess::announcing(Command::new(&this).args(["upstream"]))?;
        let proxy = MeasuredProcess::announcing(Command::new(&this).args(["proxy", &upstream.address.to_string()]))?;
        let issuer =
            MeasuredProcess::announcing(Command::new(&this).args(["introspection", &format!("{BASE_URL}{PATH}")]))?;
        let receiver = MeasuredProcess::announcing(Command::new(&this).args(["upstream"]))?;
        let nginx = nginx::start(folder.path(), upstream.address).await?;

        let token = sign_token(ISSUER, &format!("{BASE_URL}{PATH}"), folder.path())?;
        let prepare = |program, name, configuration, token| {
            Setup::prepare(program, name, configuration, token, folder.path(), upstream.address)
        };
        let standard = prepare(portcullis, "standard", Configuration::Standard, token.clone())?;
        let mut times_to_ready = Vec::new();
        for _ in 1..STARTS {
            times_to_ready.push(standard.start().await?.1);
        }
        let (process, time_to_ready) = standard.start().await?;
        times_to_ready.push(time_to_ready);
        // Waits until the runtime is idle. There was no other request yet.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let starts = Starts::new(times_to_ready, process.memory()?);

        let standard = Server::ready(standard, process).await?;
        let all_on = Server::start(prepare(portcullis, "all-on", Configuration::AllOn, token.clone())?).await?;
        fs::write(folder.path().join(ADMIN_TOKEN_FILE), "0123456789abcdef0123456789abcdef")?;
        let metrics = Server::start(prepare(portcullis, "metrics", Configuration::Metrics, token.clone())?).await?;
        let configuration = Configuration::Traces { receiver: receiver.address };
        let traces = Server::start(prepare(portcullis, "traces", configuration, token.clone())?).await?;
        let baseline = match baseline {
            None => None,
            Some(program) => Some([
                Server::start(prepare(program, "baseline", Configuration::Standard, token.clone())?).await?,
                Server::start(prepare(program, "baseline-all-on", Configuration::AllOn, token)?).await?,
            ]),
        };
        let configuration = Configuration::Introspecting { issuer: issuer.address };
        let introspecting =
            Server::start(prepare(portcullis, "introspecting", configuration, OPAQUE.to_owned())?).await?;
        let known_token = introspecting.request.clone().number(0).to_vec();
        let unknown_token = RequestTemplate::new(known_token, OPAQUE, LETTERS_AT, letters);
        let (_others, _folder) = ([issuer, receiver], folder);
        Ok(Self {
            upstream,
            nginx,
            proxy,
            standard,
            all_on,
            metrics,
            traces,
            introspecting,
            baseline,
            unknown_token,
            starts,
            _others,
            _folder,
        })
    }

    /// Returns how many of [`VARIANTS`] run. Without a baseline, the last two do not.
    pub(super) fn variants(&self) -> usize {
        if self.baseline.is_some() { VARIANTS.len() } else { BASELINE }
    }

    /// Measures one variant in one round.
    ///
    /// # Errors
    /// Fails when a response is not 200, or the upstream did not receive exactly as many requests as there are
    /// responses.
    pub(super) async fn measure(&self, variant: usize, times: usize) -> anyhow::Result<Sample> {
        let (process, request, server) = match variant {
            UPSTREAM => (&self.upstream, self.request(), None),
            NGINX => (&self.nginx, self.request(), None),
            HYPER => (&self.proxy, self.request(), None),
            PORTCULLIS => self.standard.target(),
            ALL_ON => self.all_on.target(),
            METRICS => self.metrics.target(),
            TRACES => self.traces.target(),
            HIT => self.introspecting.target(),
            MISS => (&self.introspecting.process, &self.unknown_token, Some(&self.introspecting.setup)),
            _ => {
                let servers = self.baseline.as_ref().context("no baseline was started")?;
                servers[usize::from(variant == BASELINE_ALL_ON)].target()
            }
        };
        let requests = times * load::CONNECTIONS;
        let (hits, cpu) = (self.hits().await?, process.cpu()?);
        if let Some(server) = server {
            server.clear_log()?;
        }
        let elapsed = load::run(process.address, request, times).await.context(VARIANTS[variant])?;
        let lines_missing = match server {
            // The measurement includes writing the log.
            Some(server) => server.lines_missing(requests).await?,
            None => 0,
        };
        let (hits, cpu) = (self.hits().await? - hits, process.cpu()? - cpu);
        ensure!(
            hits == requests,
            "{}: {requests} responses, but the upstream received {hits} requests",
            VARIANTS[variant]
        );
        Ok(Sample {
            cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64,
            throughput: requests as f64 / elapsed.as_secs_f64(),
            lines_missing,
        })
    }

    /// Returns the server's current memory.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        self.standard.process.memory()
    }

    /// Returns the measured request.
    pub(super) fn request(&self) -> &RequestTemplate {
        &self.standard.request
    }

    /// Returns the token of the measured request.
    pub(super) fn token(&self) -> &str {
        &self.standard.setup.token
    }

    /// Empties the log files.
    pub(super) fn clear_log(&self) -> anyhow::Result<()> {
        self.standard.setup.clear_log()
    }

    /// Returns the address of the server under test.
    pub(super) fn protected(&self) -> SocketAddr {
        self.standard.process.address
    }

    /// Returns the number of POST requests that the upstream received.
    async fn hits(&self) -> anyhow::Result<usize> {
        let mut connection = Connection::open(self.upstream.address).await?;
        Ok(std::str::from_utf8(connection.get("/").await?.ok()?.body)?.parse()?)
    }
}

impl<'a> Server<'a> {
    async fn start(setup: Setup<'a>) -> anyhow::Result<Self> {
        let (process, _) = setup.start().await?;
        Self::ready(setup, process).await
    }

    /// Opens the session of all requests.
    async fn ready(setup: Setup<'a>, process: MeasuredProcess) -> anyhow::Result<Self> {
        setup.clear_log()?;
        let request = RequestTemplate::fixed(tool_call(&setup.token, &setup.open_session().await?));
        ensure!(setup.lines_missing(1).await? == 0, "the first request has no access line");
        Ok(Self { setup, process, request })
    }

    fn target(&self) -> (&MeasuredProcess, &RequestTemplate, Option<&Setup<'a>>) {
        (&self.process, &self.request, Some(&self.setup))
    }
}
