//! From a protected resource's URL to an access token, and MCP calls with it.

mod authorization_request;
mod authorizer;
mod code_flow;
mod credentials;
mod error;
mod interaction;
mod mcp;
mod random;
mod redirect;
mod registration;
mod selection;
mod start_url;
#[cfg(test)]
mod testing;
mod token;
mod token_request;

pub use authorization_request::AuthorizationRequest;
pub use authorizer::{Authorizer, AuthorizerSettings};
pub use code_flow::Unfit;
pub use credentials::{ClientAuthentication, ClientCredentials};
pub use error::ClientError;
pub use interaction::{AutoConsent, Interaction, InteractionError, LoopbackRedirect};
pub use mcp::{McpClient, McpError, McpSettings, MessageStream, RpcError};
pub use redirect::{RedirectError, RedirectParameters};
pub use start_url::{StartUrl, StartUrlError};
pub use token::ResourceToken;
