//! `cargo xtask conformance client`: the client scenarios.

use std::{env, path::Path};

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::built;

use super::{
    report::{Verdict, verdict},
    suite::Suite,
};

/// The options of `client`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only scenarios whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Run the scenarios through `portcullis connect`, which is driven over its standard input and
    /// output. Without the back-compatibility scenarios, for which it has no options.
    #[arg(long)]
    connect: bool,
}

/// A run of several scenarios with one revision.
struct Run {
    title: &'static str,
    revision: &'static str,
    scenarios: Vec<String>,
    /// Whether the suite must be forced to run scenarios that it does not score for the revision.
    force: bool,
}

const OLDEST: &str = "2025-03-26";
const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";
const EXTENSIONS: [&str; 6] = [
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
];
const BACK_COMPATIBILITY: [&str; 2] = [
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
];

/// Scenarios that a client passes with an error, with that error.
const REFUSALS: [(&str, &str); 7] = [
    ("auth/resource-mismatch", "discovery.resource_mismatch"),
    ("auth/scope-retry-limit", "mcp.insufficient_scope"),
    ("auth/iss-supported-missing", "response.issuer_missing"),
    ("auth/iss-wrong-issuer", "response.issuer_mismatch"),
    ("auth/iss-unexpected", "response.issuer_mismatch"),
    ("auth/iss-normalized", "response.issuer_mismatch"),
    ("auth/metadata-issuer-mismatch", "discovery.issuer_mismatch"),
];

/// Runs the selected scenarios. Fails when one does not pass, or none is selected.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let suite = Suite::install()?;
    let names = |list: &[&str]| {
        list.iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let runs = [
        Run {
            title: "required",
            revision: OLD,
            scenarios: suite.required(OLD, "Client scenarios")?,
            force: false,
        },
        Run {
            title: "required",
            revision: NEW,
            scenarios: suite.required(NEW, "Client scenarios")?,
            force: false,
        },
        Run {
            title: "extensions",
            revision: OLD,
            scenarios: names(&EXTENSIONS),
            force: true,
        },
        Run {
            title: "extensions",
            revision: NEW,
            scenarios: names(&EXTENSIONS),
            force: true,
        },
        Run {
            title: "back-compatibility",
            revision: OLDEST,
            scenarios: names(&BACK_COMPATIBILITY),
            force: true,
        },
    ];
    let program = match arguments.connect {
        true => Some(
            built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?
                .program("portcullis")?,
        ),
        false => None,
    };
    let mut verdicts = Vec::new();
    for run in runs
        .iter()
        .filter(|run| program.is_none() || run.revision != OLDEST)
    {
        verdicts.extend(run.all(&suite, arguments, program.as_deref())?);
    }
    ensure!(!verdicts.is_empty(), "no scenario is selected");
    let faulty = count_faulty(&verdicts);
    ensure!(faulty == 0, "{faulty} scenarios did not pass");
    Ok(())
}

impl Run {
    /// Runs the selected scenarios one by one.
    fn all(
        &self,
        suite: &Suite,
        arguments: &Arguments,
        program: Option<&Path>,
    ) -> anyhow::Result<Vec<Verdict>> {
        let wanted = |scenario: &&String| {
            arguments
                .only
                .as_ref()
                .is_none_or(|only| scenario.contains(only.as_str()))
        };
        let mut verdicts = Vec::new();
        for scenario in self.scenarios.iter().filter(wanted) {
            let verdict = self.one(suite, scenario, program)?;
            println!(
                "  {} {}",
                if verdict.faults.is_empty() {
                    "pass"
                } else {
                    "FAIL"
                },
                verdict.scenario
            );
            verdict
                .faults
                .iter()
                .for_each(|fault| println!("       {fault}"));
            verdicts.push(verdict);
        }
        let passed = verdicts.len() - count_faulty(&verdicts);
        println!(
            "{} {}: {passed}/{}",
            self.revision,
            self.title,
            verdicts.len()
        );
        Ok(verdicts)
    }

    /// Runs one scenario with this program, or with the driver.
    fn one(
        &self,
        suite: &Suite,
        scenario: &str,
        program: Option<&Path>,
    ) -> anyhow::Result<Verdict> {
        let results =
            suite.results(&format!("{}/{}", self.revision, scenario.replace('/', "-")))?;
        let this = env::current_exe()?;
        let connect = program
            .map(|program| format!(" --connect {}", program.display()))
            .unwrap_or_default();
        let command = format!("{} conformance driver{connect}", this.display());
        let folder = results
            .to_str()
            .context("the path of the results is not UTF-8")?;
        let timeout = "20000";
        let mut parameters = vec![
            "client",
            "--command",
            &command,
            "--scenario",
            scenario,
            "--timeout",
            timeout,
        ];
        parameters.extend(["--spec-version", self.revision, "--output-dir", folder]);
        if self.force {
            parameters.push("--force");
        }
        let output = suite.run(&parameters)?;
        let refusal = REFUSALS.iter().find(|(name, _)| *name == scenario);
        let expected = refusal.map_or("ok", |(_, code)| code);
        Ok(verdict(
            scenario,
            &results,
            output.status.success(),
            expected,
        ))
    }
}

fn count_faulty(verdicts: &[Verdict]) -> usize {
    verdicts
        .iter()
        .filter(|verdict| !verdict.faults.is_empty())
        .count()
}
