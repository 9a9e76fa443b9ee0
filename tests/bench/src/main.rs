//! `cargo xtask bench`: what a protected request costs, against nginx as a bare reverse proxy, in one run.
//!
//! `docs/contribute/benchmarks.md` says what is measured and how.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod build;
mod connect;
mod figures;
mod flavour;
mod hostile;
mod http;
mod introspection;
mod issuer;
mod load;
mod measure;
mod nginx;
mod portcullis;
mod process;
mod proxy;
mod report;
mod rig;
mod sessions;
mod streams;
mod upstream;
mod varied;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

/// Measures what a protected request costs.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Args)]
struct Options {
    /// Rounds in which every variant is measured once.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Requests per round and variant.
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
    /// Also measure this program, such as a build of an earlier commit, in the same rounds.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "micro")]
    baseline: Option<PathBuf>,
}

/// One part alone, and the helpers that a run starts.
#[derive(Subcommand)]
enum Part {
    /// Only sessions: their memory and the cost of finding one, from a thousand to a million.
    Sessions,
    /// Only event streams: the memory of an idle one, and what stays when they have closed.
    Streams(streams::Options),
    /// Only the stdio bridge, beside `mcp-remote`. Needs Node.js and npm.
    Connect(connect::Options),
    #[command(hide = true)]
    StreamsUpstream,
    #[command(hide = true)]
    Upstream,
    #[command(hide = true)]
    Introspection { audience: String },
    #[command(hide = true)]
    Proxy { upstream: SocketAddr },
}

fn main() -> anyhow::Result<()> {
    let Arguments { options, part } = Arguments::parse();
    match part {
        None => measure::run(&options),
        Some(Part::Sessions) => sessions::run(),
        Some(Part::Connect(options)) => connect::run(&options),
        Some(Part::Streams(options)) => streams::run(&options),
        Some(Part::StreamsUpstream) => streams::run_upstream(),
        Some(Part::Upstream) => upstream::run(),
        Some(Part::Introspection { audience }) => introspection::run(&audience),
        Some(Part::Proxy { upstream }) => proxy::run(upstream),
    }
}
