//! `cargo xtask bench soak`: mixed traffic with key rotation, streams and reloads. Memory,
//! descriptors and tasks must not grow.

mod clients;
mod issuer;
mod report;
mod sample;
mod server;
mod slope;
mod traffic;
mod user;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use portcullis_scenarios::{Scratch, block_on};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use xtask::built;

use self::{
    clients::{disconnect, send_modern, send_rejected, use_sessions},
    issuer::RotatingIssuer,
    report::Report,
    server::SoakServer,
    traffic::Traffic,
};

/// What to measure.
#[derive(Args)]
pub(super) struct Options {
    /// How long the traffic lasts. The first fifth is not measured.
    #[arg(long, default_value_t = 1_800, value_parser = clap::value_parser!(u32).range(60..))]
    seconds: u32,
    /// The build to measure, in place of a release build that is made now.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// The time between two samples.
const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
/// The time between two replacements of the issuer's key.
const ROTATION_PERIOD: Duration = Duration::from_secs(10);
/// The time between two reloads, which are valid and invalid in turn.
const RELOAD_PERIOD: Duration = Duration::from_secs(5);
/// How often progress is reported.
const PROGRESS_REPORTS: u32 = 30;
/// Clients of each type.
const SESSION_CLIENTS: usize = 8;
const OTHER_CLIENTS: usize = 2;

/// Runs the soak, and fails if something grew.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => built::build(&["--profile=dist", "--package=portcullis", "--bin=portcullis"])?
            .program("portcullis")?,
    };
    let report = block_on(measure(
        Duration::from_secs(options.seconds.into()),
        &program,
    ))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    report.check_goals()
}

/// Runs the traffic for this time. Fails at the first unexpected response.
async fn measure(duration: Duration, program: &Path) -> anyhow::Result<Report> {
    let folder = Scratch::folder("soak");
    let issuer = RotatingIssuer::start();
    let mut server = SoakServer::start(program, &folder, issuer.identifier()).await?;
    let traffic = Arc::new(Traffic::new(server.address(), issuer));
    let mut clients = JoinSet::new();
    for number in 0..SESSION_CLIENTS {
        clients.spawn(use_sessions(Arc::clone(&traffic), number));
    }
    for _ in 0..OTHER_CLIENTS {
        clients.spawn(send_rejected(Arc::clone(&traffic)));
        clients.spawn(send_modern(Arc::clone(&traffic)));
        clients.spawn(disconnect(Arc::clone(&traffic)));
    }
    let started = Instant::now();
    let mut samples = Vec::new();
    let mut ticks = interval(SAMPLE_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next_rotation = ROTATION_PERIOD;
    let mut next_reload = RELOAD_PERIOD;
    let mut next_report = Duration::ZERO;
    while started.elapsed() < duration {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(ended) = clients.join_next() => ended?.with_context(|| server.log_end())?,
        }
        let elapsed = started.elapsed();
        let sample = server.sample(elapsed).await?;
        if elapsed >= next_report {
            eprintln!(
                "{:.0} of {} s: {} requests, {sample}",
                elapsed.as_secs_f64(),
                duration.as_secs(),
                traffic.requests()
            );
            next_report += duration / PROGRESS_REPORTS;
        }
        samples.push(sample);
        if elapsed >= next_rotation {
            traffic.issuer().rotate();
            next_rotation += ROTATION_PERIOD;
        }
        if elapsed >= next_reload {
            server.reload().await.with_context(|| server.log_end())?;
            next_reload += RELOAD_PERIOD;
        }
    }
    Ok(Report::new(
        &samples,
        duration,
        traffic.requests(),
        traffic.issuer().rotations(),
        server.reloads(),
    ))
}
