//! The command line.

mod connect;
mod idp;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::connect::{Connect, Transport};
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

// The arguments of the one that is asked for are built, and no others: a bridge keeps what it has touched for days. What
// stands in the list of commands is therefore here, and not with the arguments.
#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Protect the endpoints of a configuration file.
    Serve(Serve),
    /// Start a development authorization server and a protected MCP server, both on loopback.
    Demo(Demo),
    /// Judge a configuration, and show every value with its origin.
    Check(Check),
    /// Start the development authorization server alone.
    ///
    /// Anybody gets a token from it, under any name, so that it listens on loopback only. It speaks OAuth 2.1: metadata, registration, client
    /// ID metadata documents, the code flow with PKCE and a consent page, refresh tokens (for clients that ask for `offline_access`), client
    /// credentials, DPoP, introspection and revocation. Everything is forgotten when it stops.
    #[command(after_long_help = idp::MORE)]
    Idp(Idp),
    /// Get a token for a protected MCP server and call one method of it.
    ///
    /// The token of a login is used, and otherwise one is got for this call alone. PORTCULLIS_TOKEN in the environment
    /// takes the place of both.
    Call(Call),
    /// Sign in to a protected resource in the browser, and keep the token.
    Login(SignIn),
    /// Forget the token for a protected resource, and have it revoked where that is possible.
    Logout(SignIn),
    /// Print a fresh access token for a protected resource, for scripts. It asks nobody: log in first.
    Token(SignIn),
    /// Let a client that speaks over standard input and output use a remote MCP server.
    ///
    /// Put this command into the client's configuration where it wants a program to start. Standard input and output carry
    /// the protocol and nothing else; what a person should know goes to standard error. The token of a login is used;
    /// where there is none, the browser opens at the first message, once for all instances that were started. PORTCULLIS_TOKEN
    /// in the environment, or an `Authorization` header, takes the place of that.
    Connect(Connect),
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
    /// Print the metadata document that makes this program known to authorization servers by its address.
    ///
    /// Serve it at URL, as application/json, and sign in with `--client-metadata-url URL`. Nothing is fetched.
    ClientDocument {
        /// The https address where the document is going to be.
        url: String,
    },
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
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// The method, such as `tools/list` or `tools/call`.
    pub(crate) method: String,
    /// The method's parameters as a JSON object.
    pub(crate) params: Option<String>,
    /// Speak revision 2026-07-28, without a session, in place of 2025-11-25.
    #[arg(long)]
    pub(crate) modern: bool,
}

#[derive(Args)]
pub(crate) struct SignIn {
    /// The protected resource, such as `http://127.0.0.1:3000/mcp`.
    pub(crate) url: String,
    /// Go through the authorization request without a browser; works with a development server that grants by itself.
    #[arg(long)]
    pub(crate) auto_consent: bool,
    /// Print the authorization URL in place of opening a browser; the address that it ends at can be pasted.
    #[arg(long, conflicts_with = "auto_consent")]
    pub(crate) no_browser: bool,
    /// The scopes to ask for, separated by spaces, in place of those that the resource names.
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scope: Option<String>,
    /// The client that was registered beforehand, for authorization servers that register none by themselves.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file with that client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// The https URL of the client's metadata document, for authorization servers that take one.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata_url: Option<String>,
    /// The authorization server to use, of those that the resource names.
    #[arg(long, value_name = "ISSUER")]
    pub(crate) authorization_server: Option<String>,
    /// The port on 127.0.0.1 that the browser comes back to. By default one that belongs to the resource.
    #[arg(long, value_name = "PORT")]
    pub(crate) callback_port: Option<u16>,
    /// Where tokens are kept. By default `portcullis` in the user's state directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) store: Option<PathBuf>,
    /// Follow URLs that servers name into private networks too.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Sign in although the server says that it is part of a broader resource, such as a whole host. The token then also
    /// opens the other paths there, and the server could use it for them. A terminal asks without this.
    #[arg(long)]
    pub(crate) accept_broader_resource: bool,
    /// A PEM file of certificates to trust for the resource itself, beside the machine's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
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

    #[test]
    fn every_command_is_described_in_the_list() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
