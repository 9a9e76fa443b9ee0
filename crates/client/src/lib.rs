//! From a protected resource's URL to an access token, and MCP calls with it.
//!
//! - [`Authorizer`] gets a token: it asks the resource, takes its challenge, finds the authorization server, registers
//!   there where it has to, and runs the authorization code flow with PKCE (S256), `state`, `resource` (RFC 8707) and
//!   `iss` (RFC 9207). Any doubt ends the flow before a code or a token is sent anywhere.
//! - [`Interaction`] is the part of it that a person sees. [`LoopbackRedirect`] is for a browser on this machine;
//!   [`AutoConsent`] is for authorization servers that consent by themselves. Bring your own for anything else.
//! - [`ResourceToken`] is a token together with the one origin that it may be sent to.
//! - [`McpClient`] makes MCP calls over Streamable HTTP, of the revisions with sessions and of 2026-07-28, and gets
//!   itself a token when the endpoint asks for one.
//!
//! All I/O goes through [`Fetch`](portcullis_discovery::Fetch), but for the port of `LoopbackRedirect`. Tokens and
//! registrations live in memory; nothing is written to disk, and nothing is refreshed ahead of time.
//!
//! ```
//! use std::sync::Arc;
//! use portcullis_client::{Authorizer, AuthorizerSettings, LoopbackRedirect, McpClient, McpSettings, StartUrl};
//! use portcullis_discovery::{FetchSettings, HttpFetch};
//! use portcullis_metadata::SystemClock;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A URL to which a token would travel in the clear is refused before anything is sent.
//! assert!(StartUrl::parse("http://mcp.example.com/mcp").is_err());
//!
//! let fetch = Arc::new(HttpFetch::new(FetchSettings::default())?);
//! let browser = LoopbackRedirect::bind(|url| println!("please visit {url}")).await?;
//! let clock = Arc::new(SystemClock::new());
//! let authorizer = Authorizer::new(fetch.clone(), Arc::new(browser), clock, AuthorizerSettings::default());
//!
//! let start = StartUrl::parse("http://127.0.0.1:9/mcp")?;
//! let client = McpClient::new(start, fetch, Some(Arc::new(authorizer)), McpSettings::default());
//! // Nobody listens on this port.
//! assert_eq!(client.initialize().await.unwrap_err().code(), "fetch.connect");
//! # Ok(())
//! # }
//! ```

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
