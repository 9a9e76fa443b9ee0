//! `cargo xtask bench`: measures the cost of a protected request and compares it with nginx as a
//! bare reverse proxy.
//!
//! `docs/contribute/benchmarks.md` describes the measurements.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod broker;
mod build;
mod configuration;
mod connect;
mod figures;
mod hostile;
mod http;
mod instructions;
mod introspection;
mod issuer;
mod load;
mod measure;
mod nginx;
mod portcullis;
mod process;
mod proxy;
mod report;
mod request_template;
mod servers;
mod sessions;
mod soak;
mod streams;
mod upstream;
mod variant;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

/// Measures the cost of a protected request.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Args)]
struct Options {
    /// The number of rounds. In each round, every variant is measured once.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Requests per round and variant.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..))]
    requests: u32,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Measure only the steps of a request, without sockets.
    #[arg(long, conflicts_with = "only_macro")]
    micro: bool,
    /// Measure only whole requests, over sockets.
    #[arg(long = "macro")]
    only_macro: bool,
    /// Also measure this program, such as a build of an earlier commit, in the same rounds.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "micro")]
    baseline: Option<PathBuf>,
}

/// Single measurements, and the helper programs that a run starts.
#[derive(Subcommand)]
enum Part {
    /// Measure only sessions: memory and lookup time for 1,000 to 1,000,000 sessions.
    Sessions,
    /// Measure only the broker: the CPU time of a token response, and memory and start with 100,000
    /// grants.
    Broker,
    /// Measure only event streams: the memory of an idle one, and what remains when they have
    /// closed.
    Streams(streams::Options),
    /// Send mixed traffic for 30 minutes, and check that memory, descriptors and tasks do not grow.
    Soak(soak::Options),
    /// Count the instructions of a request with callgrind, and compare them with the committed
    /// table. Needs valgrind.
    Instructions(instructions::Options),
    /// Compare the stdio bridge with `mcp-remote`. Needs Node.js and npm.
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
        Some(Part::Broker) => broker::run(),
        Some(Part::Instructions(options)) => instructions::run(&options),
        Some(Part::Connect(options)) => connect::run(&options),
        Some(Part::Streams(options)) => streams::run(&options),
        Some(Part::Soak(options)) => soak::run(&options),
        Some(Part::StreamsUpstream) => streams::run_upstream(),
        Some(Part::Upstream) => upstream::run(),
        Some(Part::Introspection { audience }) => introspection::run(&audience),
        Some(Part::Proxy { upstream }) => proxy::run(upstream),
    }
}
