//! Commands that are separate programs and are built only when they are needed.

use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::{built, workspace};

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
    /// Its name.
    program: &'static str,
    /// The options with which cargo builds it. With `--workspace` its dependencies have the
    /// features with which `cargo test --workspace` builds them, so that it builds only the rest.
    cargo: &'static [&'static str],
    /// Its subcommand, if it has several.
    subcommand: Option<&'static str>,
}

impl Tool {
    /// The page of reason codes.
    pub(crate) const REASON_CODES: Self = Self::new("portcullis-reason-codes-page");
    /// The page of the keys of the configuration.
    pub(crate) const CONFIGURATION_KEYS: Self = Self::new("portcullis-configuration-keys-page");
    /// The flows of the real programs.
    pub(crate) const E2E: Self = Self::new("portcullis-e2e").with("e2e");
    /// The public MCP conformance suite.
    pub(crate) const CONFORMANCE: Self = Self::new("portcullis-e2e").with("conformance");
    /// The packages of a release.
    pub(crate) const DIST: Self = Self::new("portcullis-dist");
    /// The fuzz targets, with the committed corpora.
    pub(crate) const FUZZ_SMOKE: Self = Self::new("replay");
    /// The benchmarks. Optimized, because an unoptimized load generator would measure itself. The
    /// programs that it measures have the same profile, so that dependencies are built once.
    pub(crate) const BENCH: Self = Self {
        program: "portcullis-bench",
        cargo: &["--package=portcullis-bench", "--profile=dist"],
        subcommand: None,
    };
    /// The counts of instructions. Not optimized: they do not depend on the load generator.
    pub(crate) const INSTRUCTIONS: Self =
        Self::new("portcullis-bench").with(Self::INSTRUCTIONS_NAME);
    /// The subcommand of [`Self::BENCH`] that is [`Self::INSTRUCTIONS`].
    pub(crate) const INSTRUCTIONS_NAME: &'static str = "instructions";

    const fn new(program: &'static str) -> Self {
        Self {
            program,
            cargo: &["--workspace"],
            subcommand: None,
        }
    }

    const fn with(mut self, subcommand: &'static str) -> Self {
        self.subcommand = Some(subcommand);
        self
    }

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
        let options = [self.cargo, &["--bin", self.program, "--quiet", "--locked"]].concat();
        let program = built::build(&options)?.program(self.program)?;
        let status = Command::new(program)
            .args(self.subcommand)
            .args(&arguments.passed)
            .current_dir(workspace::root())
            .status()
            .with_context(|| format!("{} could not be started", self.program))?;
        ensure!(status.success(), "the command failed ({status})");
        Ok(())
    }
}
