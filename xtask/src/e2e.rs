//! `cargo xtask e2e`: the real program and a real authorization server, walked through from the first 401 to the end
//! of a session.
//!
//! Everything runs on loopback. What the programs write is kept in `target/e2e`.

mod authorization;
mod canary;
mod devidp;
mod discovery;
mod expect;
mod keycloak;
mod output;
mod program;
mod progress;
mod server;
mod session;
mod site;
mod visitor;
mod walk;
mod wire;

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::{built, checklist::Unit, workspace};
use progress::Progress;

/// Against what to walk.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The authorization server.
    #[arg(long, value_enum, default_value_t)]
    idp: IdentityProvider,
    /// How many seconds Keycloak may take until it is ready, each time that it starts.
    #[arg(long, value_name = "SECONDS", default_value_t = READY_WITHIN)]
    ready_within: u64,
    /// Walk through this scenario with Keycloak only; may be given several times.
    #[arg(long, value_enum, value_name = "SCENARIO")]
    only: Vec<keycloak::Scenario>,
}

/// On a machine with two cores that does other things, too, Keycloak takes about 60 s at its very first start.
const READY_WITHIN: u64 = 180;

#[derive(Clone, Copy, Default, ValueEnum)]
enum IdentityProvider {
    /// The development authorization server of this workspace. Takes seconds and needs nothing.
    #[default]
    Devidp,
    /// Keycloak 26.7.3. Takes some four minutes and 1 GB of memory, and needs Java 17 or newer, `tar`, and
    /// 400 MB in the target folder; the first run downloads 176 MB from Maven Central.
    Keycloak,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { idp: IdentityProvider::default(), ready_within: READY_WITHIN, only: Vec::new() }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?.program("portcullis")?;
    let target = workspace::metadata()?.target_directory;
    let folder = fresh_folder(&target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut progress, outcome);
    match arguments.idp {
        IdentityProvider::Devidp => {
            progress = Progress::new(Unit::Milliseconds, devidp::LIMIT);
            outcome = runtime.block_on(unless_interrupted(devidp::whole(&program, &folder, &mut progress)));
        }
        IdentityProvider::Keycloak => {
            progress = Progress::new(Unit::Seconds, keycloak::LIMIT);
            let ready_within = Duration::from_secs(arguments.ready_within);
            let whole = keycloak::whole(&program, &target, &folder, ready_within, &arguments.only, &mut progress);
            outcome = runtime.block_on(unless_interrupted(whole));
        }
    }
    println!("\n{}", progress.table());
    outcome.with_context(|| format!("the walk failed; what the programs wrote is in {}", folder.display()))
}

/// Ends the future, and so drops what it holds, on SIGINT, SIGTERM and SIGHUP.
async fn unless_interrupted(whole: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        outcome = whole => outcome,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("asked to end"),
        _ = hang_up.recv() => bail!("the terminal is gone"),
    }
}

fn fresh_folder(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("e2e");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}
