//! Runs a client command.

use std::process::ExitCode;

use portcullis_discovery::Product;
use portcullis_terminal::CommandError;

use crate::{
    call, cli::ClientCommand, client_document, command_error, connect, doctor, import_mcp_remote,
    login, mcp_remote, stored, undiagnosed::with_diagnosis,
};

impl ClientCommand {
    /// The level of log messages, if the environment does not choose it.
    pub fn log_level(&self) -> &'static str {
        match self {
            Self::McpRemote(arguments) => mcp_remote::log_level(arguments),
            _ => "info",
        }
    }

    /// Runs the command of this program. `command_line` is that of the whole program, whose help
    /// `mcp-remote` prints.
    ///
    /// # Errors
    /// When the command fails. The text contains the fix.
    pub fn run(
        self,
        product: Product,
        command_line: fn() -> clap::Command,
    ) -> Result<ExitCode, CommandError> {
        let result = match self {
            Self::Call(arguments) => call::run(&arguments, product)
                .map_err(|error| with_diagnosis(error, &arguments.sign_in)),
            Self::Login(arguments) => login::login(&arguments, product)
                .map(|()| ExitCode::SUCCESS)
                .map_err(|error| with_diagnosis(error, &arguments.sign_in)),
            Self::Logout(arguments) => {
                login::logout(&arguments, product).map(|()| ExitCode::SUCCESS)
            }
            Self::Token(arguments) => login::token(&arguments, product),
            Self::Status(arguments) => stored::status(&arguments),
            Self::List(arguments) => stored::list(&arguments).map(|()| ExitCode::SUCCESS),
            Self::Connect(arguments) => {
                connect::run(&arguments, product).map(|()| ExitCode::SUCCESS)
            }
            Self::McpRemote(arguments) => mcp_remote::run(&arguments, product, command_line),
            Self::ImportMcpRemote(arguments) => import_mcp_remote::run(&arguments),
            Self::Doctor(arguments) => Ok(doctor::run(&arguments, product)),
            Self::ExplainToken(arguments) => Ok(doctor::explain_token(&arguments, product)),
            Self::ClientDocument { url } => client_document::run(&url).map(|()| ExitCode::SUCCESS),
        };
        result.map_err(command_error)
    }
}
