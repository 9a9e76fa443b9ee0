//! The command line, as clap parses it.
//!
//! Types whose options are flattened into a command have no doc comments: clap would show one instead of the command's
//! description.

mod admin;
mod audit;
mod call;
mod check;
mod connect;
#[cfg(feature = "dev")]
mod demo;
mod doctor;
#[cfg(test)]
mod documented;
mod health;
#[cfg(feature = "dev")]
mod idp;
mod init;
mod log_format;
mod login;
mod mcp_remote;
mod provider;
mod serve;
mod sign_in;
mod store_option;
mod stored;
#[cfg(not(feature = "dev"))]
mod without_dev;

#[cfg(feature = "manual")]
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::admin::{Admin, AdminCommand, AdminDropTokens, AdminEnd, AdminSessions, AdminTarget};
pub(crate) use self::audit::{Audit, AuditVerify};
pub(crate) use self::call::Call;
pub(crate) use self::check::Check;
pub(crate) use self::connect::{Connect, Transport};
#[cfg(feature = "dev")]
pub(crate) use self::demo::Demo;
pub(crate) use self::doctor::{Doctor, Examination};
pub(crate) use self::health::Health;
#[cfg(feature = "dev")]
pub(crate) use self::idp::{Algorithm as IdpAlgorithm, ClientAuth as IdpClientAuth, Idp, Like as IdpLike};
pub(crate) use self::init::Init;
pub(crate) use self::login::{Login, Logout};
pub(crate) use self::mcp_remote::{ImportMcpRemote, McpRemote};
pub(crate) use self::provider::Provider;
pub(crate) use self::serve::Serve;
pub(crate) use self::sign_in::SignIn;
pub(crate) use self::store_option::StoreOption;
pub(crate) use self::stored::{List, Status, StoreOptions};
#[cfg(not(feature = "dev"))]
pub(crate) use self::without_dev::{Demo, Idp};
use log_format::LogFormatOption;

/// OAuth 2.1 protection for MCP endpoints.
///
#[cfg_attr(feature = "dev", doc = "Try `portcullis demo`: it needs no configuration and prints the next commands.")]
#[cfg_attr(not(feature = "dev"), doc = "Start with `portcullis check --config FILE`: it validates a configuration.")]
#[derive(Parser)]
#[command(version, propagate_version = true)]
pub(crate) struct Cli {
    /// The format of the log lines on standard error.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormatOption,

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
    /// The token is read from standard input, so that it stays out of the shell's history. It is not sent anywhere. Claim rules
    /// of the resource are not public, so that their rejections cannot be predicted.
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
