//! `portcullis`: OAuth 2.1 protection for MCP endpoints.

mod cli;
mod completions;
#[cfg(feature = "manual")]
mod manual;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use portcullis_serve::{Product, Program};
use portcullis_terminal::CommandError;

use cli::{Cli, Command, with_meant_option};

#[global_allocator]
static ALLOCATOR: portcullis_allocator::Allocator = portcullis_allocator::Allocator;

/// What the running server is told about this program.
const PROGRAM: Program = Program {
    product: Product {
        name: "portcullis",
        version: env!("CARGO_PKG_VERSION"),
    },
    return_freed_memory: portcullis_allocator::collect,
};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let arguments = std::env::args_os().skip(1);
        let arguments = arguments.filter_map(|argument| argument.into_string().ok());
        with_meant_option(error, Cli::command(), arguments).exit()
    });
    run(cli).unwrap_or_else(|error| {
        portcullis_terminal::report(&error);
        ExitCode::FAILURE
    })
}

fn run(
    Cli {
        log_format,
        command,
    }: Cli,
) -> Result<ExitCode, CommandError> {
    let log_format = log_format.into();
    let log_level = match &command {
        Command::Client(command) => command.log_level(),
        _ => "info",
    };
    portcullis_telemetry::start(log_format, log_level, portcullis_terminal::log_writer)
        .map_err(|error| CommandError::new(error.into()))?;
    match command {
        Command::Operator(command) => command.run(PROGRAM, log_format),
        Command::Client(command) => command.run(PROGRAM.product, Cli::command),
        Command::Audit(command) => command.run(),
        Command::Completions { shell } => completions::print(shell),
        #[cfg(feature = "manual")]
        Command::Man { directory } => manual::write(&directory),
    }
}
