//! `cargo xtask e2e`: the real program and a real authorization server, walked through from the first 401 to the end
//! of a session.
//!
//! Everything runs on loopback. What the programs write is kept in `target/e2e`.

mod authorization;
mod canary;
mod discovery;
mod expect;
mod output;
mod program;
mod progress;
mod session;
mod site;
mod visitor;
mod walk;
mod wire;

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::{built, workspace};
use progress::Progress;
use site::Site;
use visitor::Visitor;

/// Against what to walk.
#[derive(Args, Default)]
pub(crate) struct Arguments {
    /// The authorization server.
    #[arg(long, value_enum, default_value_t)]
    idp: IdentityProvider,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum IdentityProvider {
    /// The development authorization server of this workspace.
    #[default]
    Devidp,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?.program("portcullis")?;
    let folder = fresh_folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut progress = Progress::new();
    let outcome = runtime.block_on(unless_interrupted(whole(&program, &folder, arguments.idp, &mut progress)));
    println!("\n{}", progress.table());
    outcome.with_context(|| format!("the walk failed; what the programs wrote is in {}", folder.display()))
}

/// Start, walk, end, and a look at what the programs wrote; the last two also when the walk fails.
async fn whole(program: &Path, folder: &Path, idp: IdentityProvider, progress: &mut Progress) -> anyhow::Result<()> {
    let IdentityProvider::Devidp = idp;
    let mut site = progress.step("both programs start", Site::start(program, folder)).await?;
    let visitor = Visitor::new(&site)?;
    let walked = walk::walk(&visitor, progress).await;
    let stopped = progress.step("SIGTERM ends both with exit code 0", site.stop()).await;
    let searched = progress.step("no panic and no secret in their output", visitor.search_output(folder)).await;
    walked.and(stopped).and(searched)
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

fn fresh_folder() -> anyhow::Result<PathBuf> {
    let folder = workspace::metadata()?.target_directory.join("e2e");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}
