//! The command line, as clap parses it.

mod admin;
mod audit;
mod check;
mod connect;
mod doctor;
#[cfg(test)]
mod documented;
mod health;
#[cfg(feature = "dev")]
mod idp;
mod init;
mod login;
mod mcp_remote;
mod provider;
mod stored;
#[cfg(not(feature = "dev"))]
mod without_dev;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use portcullis_metadata::Secret;

pub(crate) use self::admin::{Admin, AdminCommand, AdminDropTokens, AdminEnd, AdminServer, AdminSessions};
pub(crate) use self::audit::{Audit, AuditVerify};
pub(crate) use self::check::Check;
pub(crate) use self::connect::{Connect, Transport};
pub(crate) use self::doctor::{Doctor, Examination};
pub(crate) use self::health::Health;
#[cfg(feature = "dev")]
pub(crate) use self::idp::{Algorithm as IdpAlgorithm, ClientAuth as IdpClientAuth, Idp, Like as IdpLike};
pub(crate) use self::init::Init;
pub(crate) use self::login::{Login, Logout};
pub(crate) use self::mcp_remote::{ImportMcpRemote, McpRemote};
pub(crate) use self::provider::Provider;
pub(crate) use self::stored::{List, Status};
#[cfg(not(feature = "dev"))]
pub(crate) use self::without_dev::{Demo, Idp};
use crate::{config::parse_listen_address, telemetry::LogFormat};

/// OAuth 2.1 protection for MCP endpoints.
///
#[cfg_attr(feature = "dev", doc = "Try `portcullis demo`: it needs no configuration and prints the next commands.")]
#[cfg_attr(not(feature = "dev"), doc = "Start with `portcullis check --config FILE`: it validates a configuration.")]
#[derive(Parser)]
#[command(version, propagate_version = true)]
pub(crate) struct Cli {
    /// The format of the log lines on standard error.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// Deferred, so that only the arguments of the given command are built: a bridge runs for days and keeps that memory. The
// descriptions in the list of commands must therefore be here.
#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Protect the endpoints of a configuration file.
    Serve(Serve),
    /// Start a development authorization server and a protected MCP server, both on loopback.
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Demo(Demo),
    /// Validate a configuration and print every value with its origin.
    ///
    /// Each error and warning is one line with file, line, key and fix. Exits with 1 if there are errors, or problems of services
    /// (`--online`), and with 2 if there are only warnings and `--deny-warnings` is given.
    #[command(after_long_help = check::MORE)]
    Check(Check),
    /// List and end the sessions of a running server, and drop its cached tokens.
    ///
    /// The server must have an `[admin]` table in its configuration.
    #[command(after_long_help = admin::MORE)]
    Admin(Admin),
    /// Write a configuration: asks for its values in a terminal, or takes them from options, and tests them.
    ///
    /// The tests are those of `check --online`. With problems, or if the file exists, it is written only after confirmation or
    /// with `--force`.
    #[command(after_long_help = init::MORE)]
    Init(Init),
    /// Ask the server of a configuration whether it is healthy, for the health checks of containers.
    ///
    /// It requests `/healthz` at the listener on this machine. Exits with 0 if the response is 200, and otherwise with 1.
    Health(Health),
    /// Start the development authorization server alone.
    ///
    /// It issues tokens to anyone, for any user name, and therefore listens on loopback only. It supports metadata,
    /// registration, client ID metadata documents, the code flow with PKCE and a consent page, the device flow, refresh
    /// tokens (for clients that request `offline_access`), client credentials, DPoP, introspection and revocation. Nothing is
    /// kept after it stops.
    #[cfg_attr(feature = "dev", command(after_long_help = idp::MORE))]
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Idp(Idp),
    /// Get a token for a protected MCP server and call one method of it.
    ///
    /// It uses the token of a previous login, or obtains one for this call. PORTCULLIS_TOKEN in the environment
    /// overrides both. With `--scope`, no other scopes are requested. Progress goes to standard error. Exits with 3 if
    /// the result has `isError`, and with 1 if there is no result.
    Call(Call),
    /// Sign in to a protected resource in the browser and store the token.
    Login(Login),
    /// Delete the stored token for a protected resource, and revoke it if the issuer supports that.
    Logout(Logout),
    /// Print a valid access token for a protected resource, for scripts. It never prompts: sign in with `login` first.
    ///
    /// With `--scope`, it requests these scopes with the refresh token if the login asked for them, and exits with 1 if the token
    /// lacks one of them.
    Token(SignIn),
    /// Show the stored token for a protected resource: issuer, resource, scopes, expiry and file.
    ///
    /// It makes no requests and never prints the token. Exits with 1 if no token can be used without a sign-in.
    Status(Status),
    /// List all stored tokens, as `status` does.
    List(List),
    /// Connect an MCP client that uses standard input and output to a remote MCP server.
    ///
    /// Enter this command as the server's command in the client's configuration. Standard input and output carry only the
    /// protocol; messages for the user go to standard error. It uses the token of a previous login. Without one, the browser
    /// opens at the first message, once for all running instances. PORTCULLIS_TOKEN in the environment or an `Authorization`
    /// header overrides both.
    Connect(Connect),
    /// Connect like `mcp-remote`: accepts the arguments of mcp-remote 0.15.1 and does what `connect` does.
    ///
    /// Every option takes effect, or is reported on standard error with the reason why it does not. Exits with 2 if the
    /// arguments are invalid or would weaken security.
    McpRemote(McpRemote),
    /// Replace `mcp-remote` with this program in the configurations of MCP clients.
    ///
    /// Without CONFIG, it reads the configurations of Claude Desktop, Cursor, VS Code, Windsurf and Zed in their default
    /// locations. It prints the changes, and writes them only with `--write` or after confirmation in a terminal. Comments
    /// and formatting are preserved.
    ImportMcpRemote(ImportMcpRemote),
    /// Check the authorization chain of an MCP server or other protected resource, step by step.
    ///
    /// Exits with 0 if standards-compliant clients can connect, with 1 if there are problems, and with 2 if it cannot run.
    /// It sends no credentials except those of a fictitious client, and registers nothing, unless you give `--login`.
    Doctor(Doctor),
    /// Check an access token against every rule of a protected resource, and predict the response.
    ///
    /// The token is read from standard input, so that it stays out of the shell's history. It is not sent anywhere.
    /// Exits with 1 if a guard of this resource would reject the token, and otherwise as `doctor`.
    ExplainToken(Examination),
    /// Print the client ID metadata document of this program for authorization servers.
    ///
    /// Serve it at URL, as application/json, and sign in with `--client-metadata-url URL`. It makes no requests.
    ClientDocument {
        /// The https URL at which the document will be served.
        url: String,
    },
    /// Verify the audit trail.
    #[command(subcommand)]
    Audit(Audit),
    /// Print a completion script for a shell.
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

#[derive(Args)]
pub(crate) struct Serve {
    /// The configuration file (TOML). `PORTCULLIS_*` variables override its values.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// Address and port to listen on, instead of the configured one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,
}

#[cfg(feature = "dev")]
#[derive(Args)]
pub(crate) struct Demo {
    /// Where the protected server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000", value_parser = parse_listen_address)]
    pub(crate) listen: SocketAddr,
    /// Where the development authorization server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000", value_parser = parse_listen_address)]
    pub(crate) idp_listen: SocketAddr,
    /// Grant every authorization request without consent, as the user alice.
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
    /// Use revision 2026-07-28, without a session, instead of 2025-11-25.
    #[arg(long)]
    pub(crate) modern: bool,
}

#[derive(Args)]
pub(crate) struct SignIn {
    /// The protected resource, such as `http://127.0.0.1:3000/mcp`.
    pub(crate) url: String,
    /// Complete the authorization request without a browser. Requires a development server with `--auto-consent`.
    #[arg(long)]
    pub(crate) auto_consent: bool,
    /// Print the authorization URL instead of opening a browser. The URL of the final redirect can be pasted.
    #[arg(long, conflicts_with = "auto_consent")]
    pub(crate) no_browser: bool,
    /// The scopes to request, separated by spaces, instead of those that the resource lists.
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scope: Option<String>,
    /// The identifier of a preregistered client, for authorization servers without dynamic registration.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file with that client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// How the client authenticates at the token endpoint. By default the registration decides, then the authorization
    /// server's list.
    #[arg(long, value_name = "METHOD", value_parser = ["none", "client_secret_post", "client_secret_basic"])]
    pub(crate) token_auth_method: Option<String>,
    /// The https URL of the client's metadata document, for authorization servers that support it.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata_url: Option<String>,
    /// The authorization server to use, one of those that the resource lists.
    #[arg(long, value_name = "ISSUER")]
    pub(crate) authorization_server: Option<String>,
    /// The port on this machine that receives the redirect. The default depends on the resource.
    #[arg(long, value_name = "PORT")]
    pub(crate) callback_port: Option<u16>,
    /// The path of the redirect, exactly as it was registered. The default is `/callback`.
    #[arg(long, value_name = "PATH")]
    pub(crate) callback_path: Option<String>,
    /// The host of the redirect: `127.0.0.1` (default), `localhost` (which receives on 127.0.0.1 and ::1) or `::1`.
    #[arg(long, value_name = "HOST", value_parser = ["127.0.0.1", "localhost", "::1"])]
    pub(crate) callback_host: Option<String>,
    /// The client secret, for commands that do not read it from a file.
    #[arg(skip)]
    pub(crate) client_secret: Option<Secret>,
    /// Where tokens are stored. The default is `portcullis` in the user's state directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) store: Option<PathBuf>,
    /// Also accept URLs of private networks from servers.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Sign in even if the server is part of a broader resource, such as a whole host. The token is then also valid for the
    /// other paths there, and the server could use it for them. Without this option, the user is asked in a terminal.
    #[arg(long)]
    pub(crate) accept_broader_resource: bool,
    /// A PEM file of certificates to trust for the host and port of the URL, in addition to the system's. `SSL_CERT_FILE` is
    /// for all hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) provider: Provider,
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
