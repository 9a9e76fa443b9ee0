//! Options for authorization servers that do not follow MCP's authorization profile.

use clap::Args;
use portcullis_client::AuthorizeParameter;

#[derive(Args)]
pub(crate) struct Provider {
    /// Omit the parameter `resource`, for authorization servers that reject it. Known issuers (Microsoft Entra ID, Google) need
    /// no option. The token is then limited by its scopes only.
    #[arg(long)]
    pub(crate) no_resource: bool,
    /// A further parameter of the authorization request, such as `audience=https://api.example.com`; may be repeated.
    #[arg(long = "authorize-param", value_name = "KEY=VALUE", value_parser = AuthorizeParameter::parse)]
    pub(crate) authorize_params: Vec<AuthorizeParameter>,
    /// Sign in although the server's metadata does not say whether it supports PKCE (S256). A server that lists other methods
    /// is rejected all the same.
    #[arg(long)]
    pub(crate) assume_pkce: bool,
    /// Sign in without `resource` and without a question. The server receives a token that is valid wherever its scopes are, and
    /// the server chose the scopes unless --scope does. Without this option, a terminal prompts.
    #[arg(long)]
    pub(crate) accept_unbound_token: bool,
}
