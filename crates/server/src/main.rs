//! `portcullis`: OAuth 2.1 in front of MCP-style endpoints.

mod audit;
mod cli;
mod command;
mod config;
mod demo;
mod plan;
mod serve;
mod telemetry;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let Cli { log_format, command } = Cli::parse();
    let outcome = telemetry::start(log_format).and_then(|()| match command {
        Command::Serve(arguments) => command::serve::run(&arguments, log_format),
        Command::Demo(arguments) => command::demo::run(&arguments, log_format),
        Command::Check(arguments) => command::check::run(&arguments),
        Command::Idp(arguments) => command::idp::run(&arguments),
        Command::Call(arguments) => command::call::run(&arguments),
        Command::Completions { shell } => command::completions::run(shell),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            command::report(&error);
            ExitCode::FAILURE
        }
    }
}
