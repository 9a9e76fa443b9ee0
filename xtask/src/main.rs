//! The development commands of this workspace. `cargo xtask --help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod advisories;
mod api;
mod ci;
mod crates;
mod installing;
mod instruction_counts;
mod layers;
mod publishable;
mod requirements;
mod tool;

use clap::{Parser, Subcommand};

use tool::Tool;

/// Development commands of the Portcullis workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands. Their comments are the texts of `--help`.
#[derive(Subcommand)]
enum Command {
    /// Run every check that a change must pass.
    Ci(ci::Arguments),
    /// Check that each crate uses only crates of lower layers.
    Layers,
    /// Check that every requirement has a test.
    Requirements {
        /// Print each requirement and its tests, as Markdown.
        #[arg(long)]
        print: bool,
    },
    /// Check that every reason code is explained, and write the pages of reason codes.
    ReasonCodes(tool::Arguments),
    /// Write docs/use/configuration-keys.md from the schema of the configuration.
    ConfigurationKeys(tool::Arguments),
    /// Write how to install the program into the pages, as docs/contribute/installing.toml says.
    Installing {
        /// Fail when a page is out of date, instead of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Write the public API of each library crate to docs/contribute/api.
    Api {
        /// Fail when a snapshot is out of date, instead of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Compare Cargo.lock with the snapshot of the RustSec advisory database that advisory-db.toml
    /// names.
    Advisories(advisories::Arguments),
    /// Print the number of dependencies of each crate.
    Crates {
        /// Also measure how long a clean build of each crate takes.
        #[arg(long)]
        time: bool,
    },
    /// Sign in through the real programs, from the first 401 to the end of a session.
    E2e(tool::Arguments),
    /// Run the public MCP conformance suite.
    Conformance(tool::Arguments),
    /// Replay the committed fuzz corpora, and mutations of them, through every fuzz target.
    FuzzSmoke,
    /// Build the packages of a release into target/packages, or check the files of deploy/.
    Dist(tool::Arguments),
    /// Measure CPU time and throughput of a protected request, beside nginx as a bare reverse
    /// proxy.
    Bench(tool::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Layers => layers::run(),
        Command::Requirements { print } => requirements::run(print),
        Command::ReasonCodes(arguments) => Tool::REASON_CODES.run(&arguments),
        Command::ConfigurationKeys(arguments) => Tool::CONFIGURATION_KEYS.run(&arguments),
        Command::Installing { check } => installing::run(check),
        Command::Api { check } => api::run(check),
        Command::Advisories(arguments) => advisories::run(&arguments),
        Command::Crates { time } => crates::run(time),
        Command::E2e(arguments) => Tool::E2E.run(&arguments),
        Command::Conformance(arguments) => Tool::CONFORMANCE.run(&arguments),
        Command::FuzzSmoke => Tool::FUZZ_SMOKE.run(&tool::Arguments::default()),
        Command::Dist(arguments) => Tool::DIST.run(&arguments),
        Command::Bench(arguments) => Tool::run_benchmark(&arguments),
    }
}
