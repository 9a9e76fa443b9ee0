//! The client commands, as clap parses them.
//!
//! Types whose options are flattened into a command have no doc comments: clap would show one
//! instead of the command's description.

mod call;
mod connect;
mod doctor;
mod login;
mod mcp_remote;
mod provider;
mod sign_in;
mod store_option;
mod stored;

use clap::Subcommand;

pub(crate) use self::{
    call::Call,
    connect::{Connect, Transport},
    doctor::{Doctor, Examination},
    login::{Login, Logout},
    mcp_remote::{ImportMcpRemote, McpRemote},
    provider::Provider,
    sign_in::SignIn,
    store_option::StoreOption,
    stored::{List, Status, StoreOptions},
};

/// A command of the users of protected resources.
// Deferred, so that only the arguments of the given command are built: a bridge runs for days and
// keeps that memory. The descriptions in the list of commands must therefore be here.
#[derive(Subcommand)]
#[command(defer = true)]
#[non_exhaustive]
pub enum ClientCommand {
    /// Get a token for a protected MCP server and call one method of it.
    ///
    /// It uses the token of a previous login, or obtains one for this call. PORTCULLIS_TOKEN in the
    /// environment overrides both. With `--scope`, no other scopes are requested. Progress goes to
    /// standard error. Exits with 3 if the result has `isError`, and with 1 if there is no result.
    #[command(
        after_long_help = "Examples:\n  portcullis call https://mcp.example.com/mcp tools/list\n  portcullis call https://mcp.example.com/mcp tools/call '{\"name\":\"add\",\"arguments\":{\"a\":2,\"b\":3}}'"
    )]
    Call(Call),
    /// Sign in to a protected resource in the browser and store the token.
    #[command(
        after_long_help = "Examples:\n  portcullis login https://mcp.example.com/mcp\n  portcullis login --device https://mcp.example.com/mcp"
    )]
    Login(Login),
    /// Delete the stored token for a protected resource, and revoke it if the issuer supports that.
    #[command(
        after_long_help = "Examples:\n  portcullis logout https://mcp.example.com/mcp\n  portcullis logout --all"
    )]
    Logout(Logout),
    /// Print a valid access token for a protected resource, for scripts. It never prompts: sign in
    /// with `login` first.
    ///
    /// With `--scope`, it requests these scopes with the refresh token if the login asked for them,
    /// and exits with 1 if the token lacks one of them.
    #[command(after_long_help = "Example:\n  portcullis token https://mcp.example.com/mcp")]
    Token(SignIn),
    /// Show the stored token for a protected resource: issuer, resource, scopes, expiry and file.
    ///
    /// It makes no requests and never prints the token. Exits with 1 if no token can be used
    /// without a sign-in.
    #[command(after_long_help = "Example:\n  portcullis status https://mcp.example.com/mcp")]
    Status(Status),
    /// List all stored tokens, as `status` does.
    #[command(after_long_help = "Example:\n  portcullis list --json")]
    List(List),
    /// Connect an MCP client that uses standard input and output to a remote MCP server.
    ///
    /// Enter this command as the server's command in the client's configuration. Standard input and
    /// output carry only the protocol; messages for the user go to standard error. It uses the
    /// token of a previous login. Without one, the browser opens at the first message, once for all
    /// running instances. PORTCULLIS_TOKEN in the environment or an `Authorization` header
    /// overrides both.
    #[command(after_long_help = "Example:\n  portcullis connect https://mcp.example.com/mcp")]
    Connect(Connect),
    /// Connect like `mcp-remote`: accepts the arguments of mcp-remote 0.15.1 and does what
    /// `connect` does.
    ///
    /// Every option takes effect, or is reported on standard error with the reason why it does not.
    /// Exits with 2 if the arguments are invalid or would weaken security.
    #[command(
        after_long_help = "Example:\n  portcullis mcp-remote https://mcp.example.com/mcp --transport http-only"
    )]
    McpRemote(McpRemote),
    /// Replace `mcp-remote` with this program in the configurations of MCP clients.
    ///
    /// Without CONFIG, it reads the configurations of Claude Desktop, Cursor, VS Code, Windsurf and
    /// Zed in their default locations. It prints the changes, and writes them only with `--write`
    /// or after confirmation in a terminal. Comments and formatting are preserved.
    #[command(
        after_long_help = "Examples:\n  portcullis import-mcp-remote\n  portcullis import-mcp-remote --write .mcp.json"
    )]
    ImportMcpRemote(ImportMcpRemote),
    /// Check the authorization chain of an MCP server or other protected resource, step by step.
    ///
    /// Exits with 0 if standards-compliant clients can connect, with 1 if there are problems, and
    /// with 2 if it cannot run. Without `--login` and `--token`, it sends no credentials except
    /// those of a fictitious client. It registers a client to test that, and deletes it where the
    /// server permits; `--no-registration` turns this off.
    #[command(
        after_long_help = "Examples:\n  portcullis doctor https://mcp.example.com/mcp\n  portcullis doctor https://mcp.example.com/mcp --html chain.html"
    )]
    Doctor(Doctor),
    /// Check an access token against every rule of a protected resource, and predict the response.
    ///
    /// The token is read from standard input, so that it stays out of the shell's history. It is
    /// not sent anywhere. Claim rules of the resource are not public, so that their rejections
    /// cannot be predicted. Exits with 1 if a guard of this resource would reject the token, and
    /// otherwise as `doctor`.
    #[command(
        after_long_help = "Example:\n  portcullis token https://mcp.example.com/mcp | portcullis explain-token https://mcp.example.com/mcp"
    )]
    ExplainToken(Examination),
    /// Print the client ID metadata document of this program for authorization servers.
    ///
    /// Serve it at URL, as application/json, and sign in with `--client-metadata-url URL`. It makes
    /// no requests.
    #[command(
        after_long_help = "Example:\n  portcullis client-document https://client.example.com/portcullis.json"
    )]
    ClientDocument {
        /// The https URL at which the document will be served.
        url: String,
    },
}

/// A program with these commands only.
#[cfg(test)]
#[derive(clap::Parser)]
#[command(name = "portcullis", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}
