//! `cargo xtask e2e --readers`: one corpus of messages through the real program to real readers of
//! JSON and MCP.
//!
//! The token lacks `mcp:admin`, which rules require for every protected name. The run fails if a
//! reader receives a protected name, or a method or name other than the audited ones.

mod audit;
mod compare;
mod corpus;
mod gateway;
mod generator;
mod in_process;
mod install;
mod line;
mod names;
mod random;
mod reader;
mod report;
mod sender;

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    path::Path,
    time::Duration,
};

use anyhow::ensure;
use clap::Args;
use tokio::time::{Instant, sleep};

use self::{
    compare::compare,
    gateway::Gateway,
    install::Installed,
    reader::Reader,
    report::{Report, Row},
    sender::Sent,
};
use super::progress::Progress;

/// The time limit of a step other than the installation.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);
/// The time limit of the installation: about 60 MB of downloads, and a build of the Go SDK.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The time after which the reports of all readers are in their logs.
const SETTLE: Duration = Duration::from_millis(500);
/// The maximum time until the readers have reported what the privileged token reaches.
const REPORT_LIMIT: Duration = Duration::from_secs(60);

/// The subject of the token that has all scopes.
const PRIVILEGED: &str = "privileged";

/// Which messages to send.
#[derive(Args, Clone, Copy)]
pub(crate) struct Options {
    /// The seed of the generated messages for the readers; random by default, and printed.
    #[arg(long, value_name = "SEED", requires = "readers")]
    seed: Option<u64>,
    /// The number of generated messages for each reader, in addition to the fixed ones.
    #[arg(long, value_name = "COUNT", requires = "readers", default_value_t = GENERATED)]
    generated: usize,
}

const GENERATED: usize = 2500;

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: None,
            generated: GENERATED,
        }
    }
}

/// Installs the readers, sends the corpus to each through one gateway, and compares their reports
/// with the audit trail.
pub(crate) async fn run(
    program: &Path,
    target: &Path,
    folder: &Path,
    options: Options,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let packages = target.join("readers");
    let install = install::all(&packages, folder);
    let installed = progress
        .step_within(
            INSTALL_LIMIT,
            "npm, pip and go install the readers, once",
            install,
        )
        .await?;
    let mut report = Report::default();
    let mut readers = progress
        .step("the readers start", start(installed, folder, &mut report))
        .await?;
    let mut gateway = progress
        .step(
            "the gateway starts",
            Gateway::start(program, folder, &readers),
        )
        .await?;
    progress
        .step(
            "each reader reports what a privileged token reaches",
            control(&gateway, &readers),
        )
        .await?;

    let seed = options.seed.unwrap_or_else(random_seed);
    println!("        seed {seed}: `cargo xtask e2e --readers --seed {seed}` repeats it");
    let mut cases = corpus::fixed();
    cases.extend(generator::generate(seed, options.generated, &cases));
    corpus::number(&mut cases);
    let sending = sender::send_all(&gateway, &readers, cases);
    let sent = progress
        .step("the corpus passes through the gateway", sending)
        .await?;
    sleep(SETTLE).await;
    let decisions = progress
        .step(
            "the gateway ends and its audit trail is complete",
            gateway.decisions(),
        )
        .await?;
    for (reader, sent) in readers.iter_mut().zip(&sent) {
        reader.expect_running()?;
        let row = compare(sent, &reader.lines()?, &decisions);
        report.add(reader.name, Row::Compared(row));
    }
    println!("\n{report}");
    std::fs::write(folder.join("findings.txt"), report.findings())?;
    report.result()
}

/// Starts the readers that are available, and reports the others as skipped.
async fn start(
    installed: Vec<(&'static str, Installed)>,
    folder: &Path,
    report: &mut Report,
) -> anyhow::Result<Vec<Reader>> {
    let mut readers = Vec::new();
    for (name, installed) in installed {
        match installed {
            Installed::Ready(start) => readers.push(Reader::start(name, start, folder).await?),
            Installed::Missing(reason) => report.add(name, Row::Skipped(reason)),
        }
    }
    Ok(readers)
}

/// Checks that each reader reports names and resolves the aliases that it is known to resolve. A
/// reader that reports nothing would pass any corpus.
async fn control(gateway: &Gateway, readers: &[Reader]) -> anyhow::Result<()> {
    let cases = corpus::controls();
    let sent: Vec<Sent> = sender::send_privileged(gateway, readers, cases).await?;
    let deadline = Instant::now() + REPORT_LIMIT;
    for (reader, sent) in readers.iter().zip(&sent) {
        while let Some(missing) = missing_report(reader, sent)? {
            ensure!(Instant::now() < deadline, "{} {missing}", reader.name);
            sleep(SETTLE).await;
        }
    }
    Ok(())
}

/// Returns what a reader does not report although it must, if anything.
fn missing_report(reader: &Reader, sent: &Sent) -> anyhow::Result<Option<String>> {
    let lines = reader.lines()?;
    for (request, case) in sent.requests() {
        let seen = lines.iter().filter(|line| line.request == request);
        let names: Vec<_> = seen.flat_map(|line| &line.names).collect();
        if let Some(expected) = case.expected_for(reader.name)
            && !names.iter().any(|name| *name == expected)
        {
            let label = &case.label;
            let missing = format!("does not report {expected:?} for `{label}`: {names:?}");
            return Ok(Some(missing));
        }
    }
    Ok(None)
}

/// Returns another number in each run: the hasher of the standard library has random keys.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}
