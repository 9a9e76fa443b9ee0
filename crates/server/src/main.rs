//! `portcullis`: OAuth 2.1 protection for MCP endpoints.

mod cli;
mod command;
mod sent_secrets;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use portcullis_serve::Program;

#[global_allocator]
static ALLOCATOR: portcullis_allocator::Allocator = portcullis_allocator::Allocator;

/// What the running server is told about this program.
const PROGRAM: Program =
    Program { version: env!("CARGO_PKG_VERSION"), return_freed_memory: portcullis_allocator::collect };

fn main() -> ExitCode {
    let Cli { log_format, command } = Cli::parse();
    let log_format = log_format.into();
    let started =
        portcullis_telemetry::start(log_format, command::mcp_remote::log_level(&command), sent_secrets::log_writer);
    let result = started.map_err(anyhow::Error::from).and_then(|()| match command {
        Command::Serve(arguments) => done(command::serve::run(&arguments, log_format)),
        #[cfg(feature = "dev")]
        Command::Demo(arguments) => done(command::demo::run(&arguments, log_format)),
        Command::Check(arguments) => command::check::run(&arguments),
        Command::Admin(arguments) => command::admin::run(&arguments),
        Command::Init(arguments) => done(command::init::run(&arguments)),
        #[cfg(feature = "dev")]
        Command::Idp(arguments) => done(command::idp::run(arguments)),
        #[cfg(not(feature = "dev"))]
        Command::Demo(_) => Err(anyhow::anyhow!(portcullis_config::without_dev("`portcullis demo`"))),
        #[cfg(not(feature = "dev"))]
        Command::Idp(_) => Err(anyhow::anyhow!(portcullis_config::without_dev("`portcullis idp`"))),
        Command::Health(arguments) => done(command::health::run(&arguments)),
        Command::Call(arguments) => command::call::run(&arguments),
        Command::Login(arguments) => done(command::login::login(&arguments)),
        Command::Logout(arguments) => done(command::login::logout(&arguments)),
        Command::Token(arguments) => command::login::token(&arguments),
        Command::Status(arguments) => command::stored::status(&arguments),
        Command::List(arguments) => done(command::stored::list(&arguments)),
        Command::Connect(arguments) => done(command::connect::run(&arguments)),
        Command::McpRemote(arguments) => command::mcp_remote::run(&arguments),
        Command::ImportMcpRemote(arguments) => command::import_mcp_remote::run(&arguments),
        Command::Doctor(arguments) => Ok(command::doctor::run(&arguments)),
        Command::ExplainToken(arguments) => Ok(command::doctor::explain_token(&arguments)),
        Command::ClientDocument { url } => done(command::client_document::run(&url)),
        Command::Audit(cli::Audit::Verify(arguments)) => command::audit::verify(&arguments),
        Command::Completions { shell } => done(command::completions::run(shell)),
        #[cfg(feature = "manual")]
        Command::Man { directory } => done(command::manual::run(&directory)),
    });
    result.unwrap_or_else(|error| {
        command::report(&error);
        ExitCode::FAILURE
    })
}

/// Returns the exit code of a command that has no other result than success or failure.
fn done(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
