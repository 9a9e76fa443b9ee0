//! `cargo xtask e2e --replicas`: three replicas behind a round-robin nginx in front of a real MCP
//! server.
//!
//! Some clients use their sessions continuously, others end theirs. Every 5 s one replica is killed
//! and started again, and `redis-server` is killed twice and loses its data. No session may be
//! lost, no request may fail except those in progress at a replica when it is killed, and no
//! replica may accept an identifier whose end was confirmed.

mod client;
mod deployment;
mod ender;
mod faults;
mod http;
mod tally;
mod user;

use std::{path::Path, rc::Rc, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Args;
use tokio::{
    task::LocalSet,
    time::{Instant, sleep_until, timeout},
};

use self::{deployment::Deployment, faults::Faults, tally::Tally};
use super::progress::Progress;

/// The path of the resource.
const ENDPOINT: &str = "/mcp";
/// The maximum time of each step except the run.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The number of clients that use their sessions.
const CLIENTS: usize = 32;
/// The number of clients that open and end sessions.
const ENDERS: usize = 24;
/// The maximum time of requests in progress at the end of the run.
const FINISH_LIMIT: Duration = Duration::from_secs(30);
/// The number of ends in a run of the default duration. A shorter run needs a proportional number.
const ENDS: u64 = 10_000;

/// The options of a run.
#[derive(Args, Clone, Copy)]
#[group(skip)]
pub(crate) struct Options {
    /// The duration of the run with replicas.
    #[arg(long, value_name = "SECONDS", requires = "replicas", default_value_t = SECONDS,
          value_parser = clap::value_parser!(u64).range(30..))]
    seconds: u64,
}

const SECONDS: u64 = 600;

/// The programs that the run starts, and the folder of their output.
pub(crate) struct Environment<'a> {
    pub(crate) program: &'a Path,
    /// The MCP server.
    pub(crate) upstream: &'a Path,
    pub(crate) folder: &'a Path,
}

/// Starts everything, runs for the given time, and prints the counts.
pub(crate) async fn run(
    environment: &Environment<'_>,
    options: Options,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    if let Some(missing) = deployment::missing_program() {
        progress.skip(
            "three replicas behind nginx",
            &format!("{missing} is not installed"),
        );
        return Ok(());
    }
    let start = Deployment::start(environment);
    let deployment = Rc::new(
        progress
            .step(
                "redis, nginx, an MCP server and three replicas start",
                start,
            )
            .await?,
    );
    let duration = Duration::from_secs(options.seconds);
    let tally = Rc::new(Tally::default());
    let run = LocalSet::new();
    let run_within = duration + FINISH_LIMIT + LIMIT;
    let name = "clients use and end sessions while replicas and redis are killed";
    let result = progress
        .step_within(
            run_within,
            name,
            run.run_until(exercise(&deployment, &tally, duration)),
        )
        .await;
    println!("\n{}", tally.report());
    result?;
    progress
        .step(
            "no session was lost, and no ended session was accepted",
            async { check(&tally, duration) },
        )
        .await
}

/// Runs all clients and faults until the time is over.
async fn exercise(
    deployment: &Rc<Deployment>,
    tally: &Rc<Tally>,
    duration: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + duration;
    let faults = Faults::new(Rc::clone(deployment), Rc::clone(tally));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn_local(user::run(
            deployment.client(&format!("user-{number}"), tally)?,
            end,
        ));
    }
    for number in 0..ENDERS {
        clients.spawn_local(ender::run(
            deployment.client(&format!("ender-{number}"), tally)?,
            end,
        ));
    }
    let replicas = tokio::task::spawn_local(faults.clone().kill_replicas(end));
    let redis = tokio::task::spawn_local(faults.restart_redis(duration));
    sleep_until(end).await;
    replicas
        .await
        .context("the task that kills replicas ended")??;
    redis
        .await
        .context("the task that restarts redis ended")??;
    let finish = async {
        while let Some(client) = clients.join_next().await {
            client.context("a client ended early")??;
        }
        Ok(())
    };
    timeout(FINISH_LIMIT, finish)
        .await
        .context("a request did not complete")?
}

/// Fails if something happened that must not, or too little happened.
fn check(tally: &Tally, duration: Duration) -> anyhow::Result<()> {
    let needed = ENDS * duration.as_secs().min(SECONDS) / SECONDS;
    let faults = tally.faults();
    ensure!(
        faults.is_empty(),
        "{} faults; the first ones:\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n")
    );
    ensure!(
        tally.confirmed.get() >= needed,
        "{} ends were confirmed; expected {needed}",
        tally.confirmed.get()
    );
    Ok(())
}
