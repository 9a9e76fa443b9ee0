//! The command line, as clap parses it.

#[cfg(test)]
mod documented;
#[cfg(test)]
mod examples;
mod log_format;
mod usage;

#[cfg(feature = "manual")]
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use portcullis_client_commands::ClientCommand;
use portcullis_operator_commands::{AuditCommand, OperatorCommand};

use log_format::LogFormatOption;

pub(crate) use usage::with_meant_option;

/// OAuth 2.1 protection for MCP endpoints.
///
#[cfg_attr(
    feature = "dev",
    doc = "Try `portcullis demo`: it needs no configuration and prints the next commands."
)]
#[cfg_attr(
    not(feature = "dev"),
    doc = "Start with `portcullis check --config FILE`: it validates a configuration."
)]
#[derive(Parser)]
#[command(version, propagate_version = true)]
pub(crate) struct Cli {
    /// The format of the log lines on standard error.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) log_format: LogFormatOption,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// The order is that of the list of commands.
#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    #[command(flatten)]
    Operator(OperatorCommand),
    #[command(flatten)]
    Client(ClientCommand),
    /// Verify the audit trail.
    #[command(
        subcommand,
        after_long_help = "Example:\n  portcullis audit verify --config portcullis.toml audit.jsonl"
    )]
    Audit(AuditCommand),
    /// Print a completion script for a shell.
    #[command(
        after_long_help = "Example:\n  portcullis completions bash > ~/.local/share/bash-completion/completions/portcullis"
    )]
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
    /// Write the manual pages, for packages.
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Man {
        /// Where to write them.
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_described_in_the_list() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
