//! `cargo xtask conformance`: the public MCP conformance suite with the parts of this project.
//!
//! Node and the suite come from npm at pinned versions, into `target/conformance`.

mod authorization;
mod client;
mod driver;
mod report;
mod server;
mod suite;

use std::path::PathBuf;

use clap::Subcommand;

/// The side that is tested.
#[derive(Subcommand)]
pub(crate) enum Part {
    /// The client library: every client scenario of each revision, run one by one; warnings are
    /// failures.
    Client(client::Arguments),
    /// The development authorization server, or the broker: the authorization server scenarios;
    /// warnings are failures.
    Authorization(authorization::Arguments),
    /// The gateway: every server scenario of each revision must have the same result with and
    /// without it.
    Server(server::Arguments),
    /// The client that the suite starts.
    #[command(hide = true)]
    Driver {
        /// The URL of the server.
        url: String,
        /// The `portcullis` program whose `connect` talks to the server, instead of the library's
        /// client.
        #[arg(long)]
        connect: Option<PathBuf>,
    },
    /// What `connect` starts for the token of a machine.
    #[command(hide = true)]
    Token {
        /// The server that the token is for.
        url: String,
    },
}

/// Runs a part of the suite.
pub(crate) fn run(part: &Part) -> anyhow::Result<()> {
    match part {
        Part::Client(arguments) => client::run(arguments),
        Part::Authorization(arguments) => authorization::run(arguments),
        Part::Server(arguments) => server::run(arguments),
        Part::Driver { url, connect: None } => driver::run(url),
        Part::Driver {
            url,
            connect: Some(program),
        } => driver::connect(program, url),
        Part::Token { url } => driver::print_token(url),
    }
}
