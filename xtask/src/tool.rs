//! Commands that are separate programs and are built only when they are needed.

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::workspace;

/// The options that are passed to the program.
#[derive(Args, Default)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Options of the program. `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    passed: Vec<String>,
}

impl Arguments {
    /// Creates arguments from these options.
    pub(crate) fn of(options: &[&str]) -> Self {
        Self {
            passed: options.iter().map(|option| (*option).to_owned()).collect(),
        }
    }

    /// Returns the options of this subcommand, if they begin with it.
    pub(crate) fn of_subcommand(&self, name: &str) -> Option<Self> {
        let (first, passed) = self.passed.split_first()?;
        (first == name).then(|| Self {
            passed: passed.to_vec(),
        })
    }
}

/// A program of this workspace that implements a command.
pub(crate) struct Tool {
    /// The options with which `cargo run` builds and starts it.
    cargo: &'static [&'static str],
    /// Its subcommand, if it has several.
    subcommand: Option<&'static str>,
}

impl Tool {
    /// The page of reason codes.
    pub(crate) const REASON_CODES: Self = Self {
        cargo: &["--package=portcullis-reason-codes-page"],
        subcommand: None,
    };
    /// The flows of the real programs.
    pub(crate) const E2E: Self = Self {
        cargo: &["--package=portcullis-e2e"],
        subcommand: Some("e2e"),
    };
    /// The public MCP conformance suite.
    pub(crate) const CONFORMANCE: Self = Self {
        cargo: &["--package=portcullis-e2e"],
        subcommand: Some("conformance"),
    };
    /// The packages of a release.
    pub(crate) const DIST: Self = Self {
        cargo: &["--package=portcullis-dist"],
        subcommand: None,
    };
    /// The fuzz targets, with the committed corpora.
    pub(crate) const FUZZ_SMOKE: Self = Self {
        cargo: &["--package=portcullis-fuzz-bodies", "--bin=replay"],
        subcommand: None,
    };
    /// The benchmarks. Optimized, because an unoptimized load generator would measure itself. The
    /// programs that it measures have the same profile, so that dependencies are built once.
    pub(crate) const BENCH: Self = Self {
        cargo: &["--package=portcullis-bench", "--profile=dist"],
        subcommand: None,
    };
    /// The counts of instructions. Not optimized: they do not depend on the load generator.
    pub(crate) const INSTRUCTIONS: Self = Self {
        cargo: &["--package=portcullis-bench"],
        subcommand: Some(Self::INSTRUCTIONS_NAME),
    };
    /// The subcommand of [`Self::BENCH`] that is [`Self::INSTRUCTIONS`].
    pub(crate) const INSTRUCTIONS_NAME: &'static str = "instructions";

    /// Runs a benchmark. Fails when it cannot be built or started, or fails itself.
    pub(crate) fn run_benchmark(arguments: &Arguments) -> anyhow::Result<()> {
        match arguments.of_subcommand(Self::INSTRUCTIONS_NAME) {
            Some(options) => Self::INSTRUCTIONS.run(&options),
            None => Self::BENCH.run(arguments),
        }
    }

    /// Builds the program and runs it with these arguments. Fails when it cannot be built or
    /// started, or fails itself.
    pub(crate) fn run(&self, arguments: &Arguments) -> anyhow::Result<()> {
        let mut command = workspace::cargo(&["run", "--quiet", "--locked"]);
        command
            .args(self.cargo)
            .arg("--")
            .args(self.subcommand)
            .args(&arguments.passed);
        let status = command.status().context("cargo could not be started")?;
        ensure!(status.success(), "the command failed ({status})");
        Ok(())
    }
}
