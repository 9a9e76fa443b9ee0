//! Chores of this workspace. `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod api;
mod ci;
mod crates;
mod layers;
mod requirements;
mod tool;

use clap::{Parser, Subcommand};

use tool::Tool;

/// Chores of the Portcullis workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check that a change must pass, the quickest first.
    Ci(ci::Arguments),
    /// Check that each crate uses only crates of lower layers.
    Layers,
    /// Check that every requirement has a test, and write docs/contribute/requirements.md.
    Requirements {
        /// Fail when docs/contribute/requirements.md is out of date, instead of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Write the public API of each library crate to docs/contribute/api.
    Api {
        /// Fail when a snapshot is out of date, instead of writing it.
        #[arg(long)]
        check: bool,
    },
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
    /// Measure CPU time and throughput of a protected request, beside nginx as a bare reverse proxy.
    Bench(tool::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Ci(arguments) => ci::run(&arguments),
        Chore::Layers => layers::run(),
        Chore::Requirements { check } => requirements::run(check),
        Chore::Api { check } => api::run(check),
        Chore::Crates { time } => crates::run(time),
        Chore::E2e(arguments) => Tool::E2E.run(&arguments),
        Chore::Conformance(arguments) => Tool::CONFORMANCE.run(&arguments),
        Chore::FuzzSmoke => Tool::FUZZ_SMOKE.run(&tool::Arguments::default()),
        Chore::Bench(arguments) => Tool::BENCH.run(&arguments),
    }
}
