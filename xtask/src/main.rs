//! Chores of this workspace. `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod built;
mod checklist;
mod ci;
mod conformance;
mod e2e;
mod fuzz_smoke;
mod layers;
mod requirements;
mod workspace;

use clap::{Parser, Subcommand};

/// Chores of the Portcullis workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check that a change must pass, in the order of the quickest first.
    Ci(ci::Arguments),
    /// Check that each crate uses only crates of lower layers.
    Layers,
    /// Check that every requirement has a test, and write docs/requirements.md.
    Requirements {
        /// Fail when docs/requirements.md is out of date, in place of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Walk the whole flow through the real programs, from the first 401 to the end of a session.
    E2e(e2e::Arguments),
    /// Run the public MCP conformance suite.
    Conformance {
        #[command(subcommand)]
        part: conformance::Part,
    },
    /// Replay the committed fuzz corpora, and small damage to them, through every fuzz target.
    FuzzSmoke,
    /// Measure CPU time and throughput of a protected request, against nginx as a bare reverse proxy.
    Bench(bench::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Ci(arguments) => ci::run(&arguments),
        Chore::Layers => layers::run(),
        Chore::Requirements { check } => requirements::run(check),
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Conformance { part } => conformance::run(&part),
        Chore::FuzzSmoke => fuzz_smoke::run(),
        Chore::Bench(arguments) => bench::run(arguments),
    }
}
