//! Chores of this workspace. `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod ci;
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
    Ci,
    /// Check that each crate uses only crates of lower layers.
    Layers,
    /// Check that every requirement has a test, and write docs/requirements.md.
    Requirements {
        /// Fail when docs/requirements.md is out of date, in place of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Measure CPU time and throughput of a protected request, against nginx as a bare reverse proxy.
    Bench(bench::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Ci => ci::run(),
        Chore::Layers => layers::run(),
        Chore::Requirements { check } => requirements::run(check),
        Chore::Bench(arguments) => bench::run(arguments),
    }
}
