//! The servers of all variants, which run side by side in front of one upstream.

use std::{env, fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::Scratch;

use super::{
    configuration::{ADMIN_TOKEN_FILE, BASE_URL, Configuration, ISSUER, PATH},
    figures::{Sample, Starts},
    http::Connection,
    issuer::BenchIssuer,
    load, nginx,
    portcullis::{Setup, tool_call},
    process::{MeasuredProcess, Memory},
    request_template::{RequestTemplate, token_letters},
    variant::Variant,
};

/// The number of starts whose duration is measured.
const STARTS: usize = 5;

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
    /// The other program.
    baseline: Option<Baseline<'a>>,
    /// A call with a different token for each number.
    unknown_token: RequestTemplate,
    pub(super) starts: Starts,
    /// The issuer and the receiver of spans.
    _others: [MeasuredProcess; 2],
    _folder: Scratch,
}

/// The other program, with its defaults and with all checks and records.
struct Baseline<'a> {
    standard: Server<'a>,
    all_on: Server<'a>,
}

/// What is measured for a variant.
struct Target<'s> {
    process: &'s MeasuredProcess,
    request: &'s RequestTemplate,
    /// The setup of a server with an access log.
    log: Option<&'s Setup<'s>>,
}

/// A server under test and its request.
struct Server<'a> {
    setup: Setup<'a>,
    process: MeasuredProcess,
    request: RequestTemplate,
}

impl<'a> Servers<'a> {
    /// Starts all servers, one after the other, and measures the starts of the server under test.
    /// Fails when a program does not start or does not respond.
    pub(super) async fn start(
        portcullis: &'a Path,
        baseline: Option<&'a Path>,
    ) -> anyhow::Result<Self> {
        let folder = Scratch::folder("bench");
        let this = env::current_exe()?;
        let upstream = MeasuredProcess::announcing(Command::new(&this).args(["upstream"]))?;
        let proxy = MeasuredProcess::announcing(
            Command::new(&this).args(["proxy", &upstream.address.to_string()]),
        )?;
        let issuer = MeasuredProcess::announcing(
            Command::new(&this).args(["introspection", &format!("{BASE_URL}{PATH}")]),
        )?;
        let receiver = MeasuredProcess::announcing(Command::new(&this).args(["upstream"]))?;
        let nginx = nginx::start(folder.path(), upstream.address).await?;

        let signer = BenchIssuer::new(
            ISSUER,
            &format!("{BASE_URL}{PATH}"),
            Configuration::Standard.algorithm(),
        );
        signer.publish(folder.path())?;
        let token = signer.sign(None);
        let prepare = |program, name, configuration, token| {
            Setup::prepare(
                program,
                name,
                configuration,
                token,
                folder.path(),
                upstream.address,
            )
        };
        let standard = prepare(
            portcullis,
            "standard",
            Configuration::Standard,
            token.clone(),
        )?;
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
        let all_on = Server::start(prepare(
            portcullis,
            "all-on",
            Configuration::AllOn,
            token.clone(),
        )?)
        .await?;
        fs::write(
            folder.path().join(ADMIN_TOKEN_FILE),
            "0123456789abcdef0123456789abcdef",
        )?;
        let metrics = Server::start(prepare(
            portcullis,
            "metrics",
            Configuration::Metrics,
            token.clone(),
        )?)
        .await?;
        let configuration = Configuration::Traces {
            receiver: receiver.address,
        };
        let traces =
            Server::start(prepare(portcullis, "traces", configuration, token.clone())?).await?;
        let baseline = match baseline {
            None => None,
            Some(program) => {
                let standard =
                    prepare(program, "baseline", Configuration::Standard, token.clone())?;
                let all_on = prepare(program, "baseline-all-on", Configuration::AllOn, token)?;
                Some(Baseline {
                    standard: Server::start(standard).await?,
                    all_on: Server::start(all_on).await?,
                })
            }
        };
        let configuration = Configuration::Introspecting {
            issuer: issuer.address,
        };
        let introspecting = Server::start(prepare(
            portcullis,
            "introspecting",
            configuration,
            OPAQUE.to_owned(),
        )?)
        .await?;
        let known_token = introspecting.request.clone().number(0).to_vec();
        let unknown_token = RequestTemplate::new(known_token, OPAQUE, LETTERS_AT, token_letters)?;
        let _others = [issuer, receiver];
        let _folder = folder;
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

    /// Returns the variants that run.
    pub(super) fn variants(&self) -> &'static [Variant] {
        Variant::of_run(self.baseline.is_some())
    }

    /// Measures one variant in one round, with this number of requests per connection. Fails when a
    /// response is not 200, or the upstream did not receive exactly as many requests as there are
    /// responses.
    pub(super) async fn measure(&self, variant: Variant, times: usize) -> anyhow::Result<Sample> {
        let Target {
            process,
            request,
            log,
        } = self.target(variant)?;
        let requests = times * load::CONNECTIONS;
        let hits = self.hits().await?;
        let cpu = process.cpu()?;
        if let Some(log) = log {
            log.clear_log()?;
        }
        let timing = load::run(process.address, request, times)
            .await
            .context(variant.name())?;
        let lines_missing = match log {
            // The measurement includes writing the log.
            Some(log) => log.lines_missing(requests).await?,
            None => 0,
        };
        let hits = self.hits().await? - hits;
        let cpu = process.cpu()? - cpu;
        ensure!(
            hits == requests,
            "{}: {requests} responses, but the upstream received {hits} requests",
            variant.name()
        );
        Ok(Sample {
            cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64,
            throughput: requests as f64 / timing.elapsed.as_secs_f64(),
            p99_ms: timing.p99.as_secs_f64() * 1e3,
            lines_missing,
        })
    }

    /// Returns the process and the request of a variant.
    fn target(&self, variant: Variant) -> anyhow::Result<Target<'_>> {
        let bare = |process| Target {
            process,
            request: self.request(),
            log: None,
        };
        let baseline = || self.baseline.as_ref().context("no baseline was started");
        Ok(match variant {
            Variant::Upstream => bare(&self.upstream),
            Variant::Nginx => bare(&self.nginx),
            Variant::Hyper => bare(&self.proxy),
            Variant::Portcullis => self.standard.target(),
            Variant::AllOn => self.all_on.target(),
            Variant::Metrics => self.metrics.target(),
            Variant::Traces => self.traces.target(),
            Variant::IntrospectionHit => self.introspecting.target(),
            Variant::IntrospectionMiss => Target {
                request: &self.unknown_token,
                ..self.introspecting.target()
            },
            Variant::Baseline => baseline()?.standard.target(),
            Variant::BaselineAllOn => baseline()?.all_on.target(),
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
        ensure!(
            setup.lines_missing(1).await? == 0,
            "the first request has no access line"
        );
        Ok(Self {
            setup,
            process,
            request,
        })
    }

    fn target(&self) -> Target<'_> {
        Target {
            process: &self.process,
            request: &self.request,
            log: Some(&self.setup),
        }
    }
}
