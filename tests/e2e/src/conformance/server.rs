//! `cargo xtask conformance server`: the server scenarios, directly and through the gateway.
//!
//! The suite sends no token, so a forwarder adds one: suite, forwarder, `portcullis serve`, server.
//! Each scenario must have the same result both times, whether it passes or not. If the gateway
//! rejects what a server wrongly accepts, a failure becomes a success, which is counted separately.

mod forwarder;
mod gateway;
mod results;
mod upstreams;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use clap::Args;

use self::{
    forwarder::Forwarder,
    gateway::Gateway,
    results::{Results, Table},
    upstreams::{Started, Upstream},
};
use super::suite::Suite;
use portcullis_scenarios::block_on;
use xtask::{built, workspace};

use crate::program::Program;

/// The options of `server`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only servers whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// A further server that is already running; can be repeated.
    #[arg(long, value_name = "NAME=URL", value_parser = Upstream::parse)]
    also: Vec<Upstream>,
    /// Run only this revision; can be repeated.
    #[arg(long, value_name = "REVISION")]
    revision: Vec<String>,
}

/// The revisions for which the suite has requirements.
const SCORED: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// The folder of results, below that of the suite.
const FOLDER: &str = "server";

/// Runs the scenarios directly and through the gateway, and compares the results.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?
        .program("portcullis")?;
    let suite = Suite::install()?;
    let folder = suite.results(FOLDER)?;
    let target = workspace::metadata()?.target_directory;
    let table = block_on(async {
        let mut table = Table::default();
        let known = upstreams::all(&target.join("conformance-servers")).await?;
        for upstream in known.into_iter().chain(arguments.also.iter().cloned()) {
            if arguments
                .only
                .as_ref()
                .is_none_or(|only| upstream.name.contains(only.as_str()))
            {
                compare(&program, &suite, &folder, &upstream, arguments, &mut table)
                    .await
                    .context(upstream.name)?;
            }
        }
        anyhow::Ok(table)
    })?;
    println!("\n{table}");
    table
        .result()
        .with_context(|| format!("the results are in {}", folder.display()))
}

/// Runs the scenarios of all revisions against one server.
async fn compare(
    program: &Path,
    suite: &Suite,
    folder: &Path,
    upstream: &Upstream,
    arguments: &Arguments,
    table: &mut Table,
) -> anyhow::Result<()> {
    let mut started = match upstream.start(folder).await? {
        Started::Listening(started) => started,
        Started::Missing(why) => {
            println!("{}: skipped: {why}", upstream.name);
            table.skip(&upstream.name, why);
            return Ok(());
        }
    };
    let is_selected = |revision: &&&str| {
        arguments.revision.is_empty()
            || arguments
                .revision
                .iter()
                .any(|selected| selected == **revision)
    };
    for revision in upstream.revisions.iter().filter(is_selected) {
        let mut gateway = Gateway::start(program, folder, &started.url).await?;
        let forwarder = Forwarder::listen(gateway.address(), gateway.token()).await?;
        let runs = SuiteRuns {
            suite,
            folder: folder.join(format!("{}-{revision}", upstream.name)),
            revision,
        };
        let direct = runs.run("direct", &started.url, None).await?;
        let through = runs.run("through", &forwarder.url(), None).await?;
        let mut differing = Vec::new();
        for scenario in direct.differing(&through) {
            // Results that depend on timing can differ once.
            let direct = runs
                .run("direct-again", &started.url, Some(&scenario))
                .await?;
            let through = runs
                .run("through-again", &forwarder.url(), Some(&scenario))
                .await?;
            if !direct.differing(&through).is_empty() {
                differing.push(scenario);
            }
        }
        let row = table.add(&upstream.name, revision, &direct, &through, &differing);
        println!("{row}");
        gateway.stop().await?;
        started.expect_running()?;
    }
    Ok(())
}

/// Runs of the suite for one server and revision.
struct SuiteRuns<'a> {
    suite: &'a Suite,
    folder: PathBuf,
    revision: &'a str,
}

impl SuiteRuns<'_> {
    /// Runs one scenario, or all, and reads the results. The suite's exit code has no further
    /// information.
    async fn run(&self, name: &str, url: &str, scenario: Option<&str>) -> anyhow::Result<Results> {
        let folder = self.folder.join(
            scenario.map_or_else(|| name.to_owned(), |scenario| format!("{name}-{scenario}")),
        );
        fs::create_dir_all(&folder)?;
        let path = folder
            .to_str()
            .context("the path of the results is not UTF-8")?;
        let mut parameters = vec!["server", "--url", url, "--output-dir", path];
        match scenario {
            Some(scenario) => parameters.extend([
                "--spec-version",
                self.revision,
                "--scenario",
                scenario,
                "--force",
            ]),
            // Includes the scenarios of extensions, which are not scored.
            None if SCORED.contains(&self.revision) => {
                parameters.extend(["--requirements", self.revision])
            }
            None => parameters.extend(["--spec-version", self.revision, "--suite", "all"]),
        }
        let mut suite = Program::start("suite", &mut self.suite.command(&parameters), &folder)?;
        suite.wait().await?;
        let results = Results::read(&folder)?;
        ensure!(
            !results.is_empty(),
            "the suite ran no scenario: {}",
            suite.last_lines()
        );
        Ok(results)
    }
}
