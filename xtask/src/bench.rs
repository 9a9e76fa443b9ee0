//! `cargo xtask bench`: what a protected request costs, against nginx as a bare reverse proxy, in one run.
//!
//! `docs/benchmarks.md` says what is measured and how.

mod build;
mod connect;
mod figures;
mod flavour;
mod folder;
mod hostile;
mod http;
mod introspection;
mod load;
mod measure;
mod nginx;
mod portcullis;
mod process;
mod proxy;
mod report;
mod rig;
mod sessions;
mod upstream;
mod varied;

use std::{net::SocketAddr, os::unix::process::CommandExt as _, process::Command};

use anyhow::Context as _;
use clap::{Args, Subcommand};

/// What to measure.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Args)]
struct Options {
    /// Rounds in which all variants take their turn.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Requests a round and variant.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..))]
    requests: u32,
    /// Print the figures for machines.
    #[arg(long)]
    json: bool,
    /// Only the steps of a request, without sockets.
    #[arg(long, conflicts_with = "only_macro")]
    micro: bool,
    /// Only whole requests, over sockets.
    #[arg(long = "macro")]
    only_macro: bool,
}

/// One part alone, and what the release build of this tool is started as.
#[derive(Subcommand)]
enum Part {
    /// Only sessions: what they take and what finding one costs, from a thousand to a million.
    Sessions,
    /// Only the stdio bridge, beside `mcp-remote`. Needs Node.js and npm.
    Connect(connect::Options),
    #[command(hide = true)]
    Measure {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        programs: build::Programs,
    },
    #[command(hide = true)]
    Upstream,
    #[command(hide = true)]
    Introspection { audience: String },
    #[command(hide = true)]
    Proxy { upstream: SocketAddr },
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.part {
        None => rebuilt(&arguments.options),
        Some(Part::Measure { options, programs }) => measure::run(&options, &programs),
        Some(Part::Sessions) => sessions::run(),
        Some(Part::Connect(options)) => connect::run(&options),
        Some(Part::Upstream) => upstream::run(),
        Some(Part::Introspection { audience }) => introspection::run(&audience),
        Some(Part::Proxy { upstream }) => proxy::run(upstream),
    }
}

/// Goes on as a release build: an unoptimized load generator would measure itself.
fn rebuilt(options: &Options) -> anyhow::Result<()> {
    let (xtask, programs) = build::build(options)?;
    let mut command = Command::new(&xtask);
    command.args(["bench", "measure"]).args(programs.to_arguments());
    command.args(["--rounds", &options.rounds.to_string(), "--requests", &options.requests.to_string()]);
    for (flag, is_set) in [("--json", options.json), ("--micro", options.micro), ("--macro", options.only_macro)] {
        command.args(is_set.then_some(flag));
    }
    Err(command.exec()).with_context(|| format!("{} does not start", xtask.display()))
}
