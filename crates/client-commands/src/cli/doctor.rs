//! The command lines of `portcullis doctor` and `portcullis explain-token`.

use std::path::PathBuf;

use clap::Args;

use super::SignIn;

#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the chain as a page for the browser to this file. A former file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also check an access token, read from standard input.
    #[arg(long)]
    pub(crate) token: bool,
    /// Also sign in, open a session, list the tools and call one: the first that is marked as
    /// read-only and needs no arguments. The token is not stored, and is revoked at the end. The
    /// other options of `login` apply.
    #[arg(long)]
    pub(crate) login: bool,
    /// Register no client. By default, one is registered at the authorization server, unless
    /// --client-id is given, and deleted at once where that is possible.
    #[arg(long)]
    pub(crate) no_registration: bool,
    /// With --login: the tool to call instead.
    #[arg(long, value_name = "NAME", requires = "login")]
    pub(crate) tool: Option<String>,
    /// With --tool: its arguments, as a JSON object.
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) tool_arguments: Option<String>,
}

#[derive(Args)]
pub struct Examination {
    /// The protected resource, such as `https://mcp.example.com/mcp`.
    pub(crate) url: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also accept URLs of private networks from servers.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// A PEM file of certificates to trust for the host and port of the URL, in addition to the
    /// system's. `SSL_CERT_FILE` is for all hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept an authorization server whose metadata does not say whether it supports PKCE.
    #[arg(long)]
    pub(crate) assume_pkce: bool,
}
