//! The options of all commands that sign in to a protected resource.

use std::path::PathBuf;

use clap::Args;
use portcullis_metadata::{Issuer, Secret};

use super::{Provider, StoreOption};

// How a command signs in to a protected resource.
#[derive(Args)]
pub struct SignIn {
    /// The protected resource, such as `http://127.0.0.1:3000/mcp`.
    pub(crate) url: String,
    /// Complete the authorization request without a browser. Requires a development server with
    /// `--auto-consent`.
    #[arg(long)]
    pub(crate) auto_consent: bool,
    /// Print the authorization URL instead of opening a browser. The URL of the final redirect can
    /// be pasted.
    #[arg(long, conflicts_with = "auto_consent")]
    pub(crate) no_browser: bool,
    /// The scopes to request, separated by spaces, instead of those that the resource lists. A
    /// login keeps the scopes of the stored token; log out first to get a token with fewer.
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scope: Option<String>,
    /// The identifier of a preregistered client, for authorization servers without dynamic
    /// registration. At its first use for the URL, it is bound to the authorization server that the
    /// resource names.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file with that client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// How the client authenticates at the token endpoint. Default: as the registration says, else
    /// by the authorization server's list.
    #[arg(long, value_name = "METHOD", value_parser = ["none", "client_secret_post", "client_secret_basic"])]
    pub(crate) token_auth_method: Option<String>,
    /// The https URL of the client's metadata document, for authorization servers that support it.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata_url: Option<String>,
    /// The authorization server to use, one of those that the resource lists. It replaces the one
    /// that a preregistered client is bound to.
    #[arg(long, value_name = "ISSUER")]
    pub(crate) authorization_server: Option<String>,
    /// The port on this machine that receives the redirect. Default: one that depends on the
    /// resource.
    #[arg(long, value_name = "PORT")]
    pub(crate) callback_port: Option<u16>,
    /// The path of the redirect, exactly as it was registered. Default: `/callback`.
    #[arg(long, value_name = "PATH")]
    pub(crate) callback_path: Option<String>,
    /// The host of the redirect: `127.0.0.1`, `localhost` (which receives on 127.0.0.1 and ::1) or
    /// `::1`. Default: `127.0.0.1`.
    #[arg(long, value_name = "HOST", value_parser = ["127.0.0.1", "localhost", "::1"])]
    pub(crate) callback_host: Option<String>,
    /// The client secret, for commands that do not read it from a file.
    #[arg(skip)]
    pub(crate) client_secret: Option<Secret>,
    /// The authorization server at which another program has used the client.
    #[arg(skip)]
    pub(crate) recorded_issuer: Option<Issuer>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
    /// Also accept URLs of private networks from servers.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Sign in even if the server is part of a broader resource, such as a whole host. The token is
    /// then also valid for the other paths there, and the server could use it for them. Without
    /// this option, the user is asked in a terminal, unless the metadata is that of the whole host.
    #[arg(long)]
    pub(crate) accept_broader_resource: bool,
    /// Sign in only if the metadata names exactly this URL as the resource, as RFC 9728 section 3.3
    /// requires: no broader resource is accepted, and the user is not asked.
    #[arg(long, conflicts_with = "accept_broader_resource")]
    pub(crate) exact_resource: bool,
    /// A PEM file of certificates to trust for the host and port of the URL, in addition to the
    /// system's. `SSL_CERT_FILE` is for all hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) provider: Provider,
}
