//! `cargo xtask ci`: every check that a change must pass.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};

use xtask::{
    checklist::{Checklist, Outcome, Unit},
    workspace,
};

use crate::{
    advisories, api, installing, instruction_counts, layers, publishable, requirements,
    tool::{self, Tool},
};

/// The checks to run. Default: all.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only this check. Can be repeated.
    #[arg(long, value_name = "NAME", value_parser = names())]
    only: Vec<String>,
    /// Skip this check. Can be repeated.
    #[arg(long, value_name = "NAME", value_parser = names())]
    skip: Vec<String>,
    /// Continue after a failed check.
    #[arg(long)]
    keep_going: bool,
}

/// The checks in their order. Those that need no build of the workspace, except `deny`, are first.
const CHECKS: &[Check] = &[
    Check::cargo("format", &["fmt", "--all", "--check"]),
    Check::function("layers", layers::run),
    Check::function("requirements", || requirements::run(false)),
    Check::function("installing", || installing::run(true)),
    Check::function("publishable", publishable::run),
    Check::cargo(
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--keep-going",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ],
    ),
    Check::cargo(
        "tests",
        &["test", "--workspace", "--no-fail-fast", "--locked"],
    ),
    Check::cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"])
        .with("RUSTDOCFLAGS", "--deny warnings"),
    Check::function("reason-codes", || {
        Tool::REASON_CODES.run(&tool::Arguments::of(&["--check"]))
    }),
    Check::function("configuration-keys", || {
        Tool::CONFIGURATION_KEYS.run(&tool::Arguments::of(&["--check"]))
    }),
    Check::function("api", || api::run(true)),
    Check::cargo(
        "deny",
        &[
            "deny",
            "--workspace",
            "check",
            "bans",
            "licenses",
            "sources",
        ],
    ),
    Check {
        name: "advisories",
        action: Action::Optional(advisories::check),
        environment: None,
    },
    Check::function("fuzz-smoke", || {
        Tool::FUZZ_SMOKE.run(&tool::Arguments::default())
    }),
    Check::function("deploy", || {
        Tool::DIST.run(&tool::Arguments::of(&["--check"]))
    }),
    Check::cargo(
        "without-dev",
        &[
            "clippy",
            "--package=portcullis",
            "--no-default-features",
            "--features=manual,redis,vendored",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ],
    ),
    Check::function("e2e", || Tool::E2E.run(&tool::Arguments::default())),
    Check::function("readers", || {
        Tool::E2E.run(&tool::Arguments::of(&["--readers"]))
    }),
    Check::function("metrics", || {
        Tool::E2E.run(&tool::Arguments::of(&["--metrics"]))
    }),
    Check {
        name: "instructions",
        action: Action::Optional(instruction_counts::check),
        environment: None,
    },
];

/// Runs the checks in their order, and prints a table of the results. Fails when a check fails. The
/// others are then skipped, unless `--keep-going` is set.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let checks: Vec<&Check> = CHECKS
        .iter()
        .filter(|check| arguments.wants(check.name))
        .collect();
    ensure!(!checks.is_empty(), "there is no check to run");
    let mut list = Checklist::new(Unit::Seconds);
    let mut has_failed = false;
    for check in checks {
        if has_failed && !arguments.keep_going {
            list.add(check.name, Outcome::NotRun, Duration::ZERO);
            continue;
        }
        println!("== {}: {}", check.name, check.command());
        let started = Instant::now();
        let outcome = match check.run() {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("{error:#}\nto repeat this check: {}", check.command());
                has_failed = true;
                Outcome::Failed
            }
        };
        println!("== {}", list.add(check.name, outcome, started.elapsed()));
    }
    println!("\n{}", list.table());
    ensure!(list.is_passed(), "this change does not pass");
    Ok(())
}

/// Returns the names of the checks, for `--help`.
fn names() -> PossibleValuesParser {
    CHECKS
        .iter()
        .map(|check| check.name)
        .collect::<Vec<_>>()
        .into()
}

impl Arguments {
    /// Returns whether a check was selected.
    fn wants(&self, name: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|other| other == name);
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.skip)
    }
}

/// A check that a change must pass.
struct Check {
    name: &'static str,
    action: Action,
    /// A variable that is set, and its value.
    environment: Option<(&'static str, &'static str)>,
}

/// How a check is run.
enum Action {
    /// A call of cargo.
    Cargo(&'static [&'static str]),
    /// A function of this tool.
    Function(fn() -> anyhow::Result<()>),
    /// A function of this tool that says whether it could run on this machine.
    Optional(fn() -> anyhow::Result<Outcome>),
}

impl Check {
    const fn cargo(name: &'static str, arguments: &'static [&'static str]) -> Self {
        Self {
            name,
            action: Action::Cargo(arguments),
            environment: None,
        }
    }

    const fn function(name: &'static str, function: fn() -> anyhow::Result<()>) -> Self {
        Self {
            name,
            action: Action::Function(function),
            environment: None,
        }
    }

    /// Sets a variable for this check only, so that the builds of the others do not depend on it.
    const fn with(mut self, variable: &'static str, value: &'static str) -> Self {
        self.environment = Some((variable, value));
        self
    }

    /// Runs the check. The result is `NotRun` if this machine lacks what it needs. Fails when the
    /// check fails or cannot be started.
    fn run(&self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Function(function) => function().map(|()| Outcome::Passed),
            Action::Optional(function) => function(),
            Action::Cargo(arguments) => {
                let status = workspace::cargo(arguments).envs(self.environment).status();
                let status = status.context("cargo could not be started")?;
                if !status.success() {
                    bail!("cargo ended with {status}");
                }
                Ok(Outcome::Passed)
            }
        }
    }

    /// Returns the command that runs only this check.
    fn command(&self) -> String {
        match self.action {
            Action::Function(_) | Action::Optional(_) => {
                format!("cargo xtask ci --only {}", self.name)
            }
            Action::Cargo(arguments) => {
                let words = arguments.iter().map(|word| (*word).to_owned());
                let variable = self
                    .environment
                    .map(|(name, value)| format!("{name}='{value}'"));
                variable
                    .into_iter()
                    .chain(["cargo".to_owned()])
                    .chain(words)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let arguments = Arguments {
            only: owned(only),
            skip: owned(skip),
            keep_going: false,
        };
        CHECKS
            .iter()
            .map(|check| check.name)
            .filter(|name| arguments.wants(name))
            .collect()
    }

    #[test]
    fn all_checks_run_by_default() {
        assert_eq!(wanted(&[], &[]).len(), CHECKS.len());
        assert_eq!(wanted(&["docs", "layers"], &[]), ["layers", "docs"]);
        assert!(!wanted(&[], &["tests"]).contains(&"tests"));
        assert!(wanted(&["tests"], &["tests"]).is_empty());
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let docs = CHECKS.iter().find(|check| check.name == "docs").unwrap();
        assert_eq!(
            docs.command(),
            "RUSTDOCFLAGS='--deny warnings' cargo doc --workspace --no-deps --locked"
        );
        let layers = CHECKS.iter().find(|check| check.name == "layers").unwrap();
        assert_eq!(layers.command(), "cargo xtask ci --only layers");
    }
}
