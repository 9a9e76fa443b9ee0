//! Options for authorization servers that differ from MCP's authorization profile.

use clap::Args;
use portcullis_client::provider::AuthorizeParameter;
use portcullis_terminal::remedy;

#[derive(Args)]
pub(crate) struct Provider {
    /// Omit the parameter `resource`, for authorization servers that reject it. Known issuers
    /// (Microsoft Entra ID, Google) need no option. The token is then limited by its scopes only.
    #[arg(long)]
    pub(crate) no_resource: bool,
    /// An additional parameter of the authorization request, such as
    /// `audience=https://api.example.com`; may be repeated.
    #[arg(long = "authorize-param", value_name = "KEY=VALUE", value_parser = authorize_parameter)]
    pub(crate) authorize_params: Vec<AuthorizeParameter>,
    /// Sign in although the server's metadata does not say whether it supports PKCE (S256). A
    /// server that lists other methods is still rejected.
    #[arg(long)]
    pub(crate) assume_pkce: bool,
    /// Sign in without `resource` and without confirmation. Only the scopes limit where the token
    /// is valid, and the server that receives it chose them unless --scope does. Without this
    /// option, the user is asked in a terminal.
    #[arg(long)]
    pub(crate) accept_unbound_token: bool,
}

fn authorize_parameter(text: &str) -> Result<AuthorizeParameter, String> {
    AuthorizeParameter::parse(text).map_err(|error| error.to_string() + &remedy(&error))
}
