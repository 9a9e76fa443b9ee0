//! `portcullis completions SHELL`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;
use portcullis_terminal::CommandError;

use crate::cli::Cli;

/// Prints the completion script for a shell.
pub(crate) fn print(shell: Shell) -> Result<ExitCode, CommandError> {
    // In memory first: `generate` panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut script);
    portcullis_terminal::print(String::from_utf8_lossy(&script).trim_end())
        .map_err(|error| CommandError::new(error.into()))?;
    Ok(ExitCode::SUCCESS)
}
