//! The command line.

mod idp;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::idp::{Algorithm as IdpAlgorithm, Idp};
use crate::telemetry::LogFormat;

/// OAuth 2.1 in front of MCP-style endpoints.
///
/// Try `portcullis demo`: it needs nothing and prints what to do next.
#[derive(Parser)]
#[command(version, propagate_version = true)]
pub(crate) struct Cli {
    /// Form of the log lines on standard error.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Protect the endpoints of a configuration file.
    Serve(Serve),
    /// Start a development authorization server and a protected MCP server, both on loopback.
    Demo(Demo),
    /// Judge a configuration, and show every value with its origin.
    Check(Check),
    #[command(after_long_help = idp::MORE)]
    Idp(Idp),
    /// Get a token for a protected MCP server and call one method of it.
    Call(Call),
    /// Examine the authorization chain of any MCP server, or other protected resource, step by step.
    ///
    /// Exits with 0 when clients that keep to the standards get through, with 1 when there are problems, and with 2 when
    /// it could not run. No credentials are sent, and nothing is registered.
    Doctor(Doctor),
    /// Judge an access token by every rule of a protected resource, and say what its guard would answer.
    ///
    /// The token is read from standard input, so that it stays out of the shell's history. It is sent nowhere.
    /// Exit codes as for `doctor`.
    ExplainToken(Examination),
    /// Print a completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}

#[derive(Args)]
pub(crate) struct Serve {
    /// The configuration file (TOML). `PORTCULLIS_*` variables override its values.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// Address and port to listen on, in place of the configured one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Args)]
pub(crate) struct Check {
    /// The configuration file (TOML).
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// Print JSON, for machines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Where the protected server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,
    /// Where the development authorization server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000")]
    pub(crate) idp_listen: SocketAddr,
    /// Grant every authorization request without asking, as the user alice.
    #[arg(long)]
    pub(crate) auto_consent: bool,
}

#[derive(Args)]
pub(crate) struct Call {
    /// The MCP endpoint, such as `http://127.0.0.1:3000/mcp`.
    pub(crate) url: String,
    /// The method, such as `tools/list` or `tools/call`.
    pub(crate) method: String,
    /// The method's parameters as a JSON object.
    pub(crate) params: Option<String>,
    /// Go through the authorization request without a browser; works with a development server that grants by itself.
    #[arg(long)]
    pub(crate) auto_consent: bool,
    /// Print the authorization URL in place of opening a browser.
    #[arg(long, conflicts_with = "auto_consent")]
    pub(crate) no_browser: bool,
    /// Speak revision 2026-07-28, without a session, in place of 2025-11-25.
    #[arg(long)]
    pub(crate) modern: bool,
}

#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) examination: Examination,
    /// Judge an access token too, read from standard input.
    #[arg(long)]
    pub(crate) token: bool,
}

#[derive(Args)]
pub(crate) struct Examination {
    /// The protected resource, such as `https://mcp.example.com/mcp`.
    pub(crate) url: String,
    /// Print JSON, for machines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Follow URLs that servers name into private networks too.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// A PEM file of certificates to trust for the resource itself, beside the machine's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
