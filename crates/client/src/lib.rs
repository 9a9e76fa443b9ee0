//! From a protected resource's URL to an access token.
//!
//! - [`Authorizer`] obtains a token: it requests the resource, reads the challenge, discovers the
//!   authorization server, registers the client if necessary, and runs the authorization code flow
//!   with PKCE (S256), `state`, `resource` (RFC 8707) and `iss` (RFC 9207). The flow fails before a
//!   code or a token is sent if any check fails.
//! - [`Interaction`] is the user's part of the flow. [`LoopbackRedirect`] is for a browser on this
//!   machine; [`AutoConsent`] is for authorization servers that consent automatically. Implement it
//!   for anything else.
//! - [`ResourceToken`] is a token with the URLs to which it can be sent.
//! - [`TokenManager`] keeps a resource's token: it refreshes it before it expires, renews it when
//!   the resource rejects it, and requests more scopes when the resource requires them.
//!   [`RequestAuthorization`] authorizes one request with any HTTP library.
//! - [`AuthorizeLayer`](service::AuthorizeLayer) does that for any HTTP client that is a tower
//!   service.
//! - [`CredentialStore`] stores tokens and registrations, in memory or in files that only their
//!   owner can read.
//! - [`NonInteractiveGrant`] obtains tokens without a user.
//! - [`registration`] has the credentials of clients, and [`provider`] the settings for
//!   authorization servers that differ from MCP's profile.
//!
//! All I/O goes through [`Fetch`](portcullis_discovery::Fetch), except the port of
//! `LoopbackRedirect` and the files of a credential store.
//!
//! ```
//! use std::sync::Arc;
//! use portcullis_client::{Authorizer, LoopbackRedirect, StartUrl};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A URL to which a token would be sent unencrypted is rejected before any request.
//! assert!(StartUrl::parse("http://mcp.example.com/mcp").is_err());
//!
//! let browser = LoopbackRedirect::bind(|url| println!("please visit {url}")).await?;
//! let authorizer = Authorizer::builder(Arc::new(browser)).build()?;
//!
//! let start = StartUrl::parse("http://127.0.0.1:9/mcp")?;
//! // No server listens on this port.
//! assert_eq!(authorizer.authorize(&start).await.unwrap_err().code(), "fetch.connect");
//! # Ok(())
//! # }
//! ```

mod access_token_source;
mod authorization;
mod authorizer;
mod error;
mod error_chain;
mod interaction;
mod non_interactive_grant;
mod oauth_error;
mod offline_access;
pub mod provider;
mod random;
mod redirect;
pub mod registration;
mod resource_challenge;
mod resource_redirects;
mod scope_limit;
#[cfg(any(test, feature = "test-util"))]
mod scripted_user;
mod server;
pub mod service;
mod shortened;
mod start_url;
pub mod store;
#[cfg(test)]
mod testing;
mod token;
mod token_manager;

pub use access_token_source::{AccessTokenSource, AccessTokenSourceError};
pub use authorization::request::AuthorizationRequest;
pub use authorizer::broader_resource::BroaderResource;
pub use authorizer::settings::AuthorizerSettings;
pub use authorizer::{Authorizer, AuthorizerBuilder, Revocation};
pub use error::ClientError;
pub use error_chain::error_chain;
pub use interaction::{
    AutoConsent, DeviceAuthorization, EndedSignIn, Interaction, InteractionError, LoopbackRedirect,
    NewRegistration, RedirectAddress, RedirectAddressError,
};
pub use non_interactive_grant::{
    AssertionError, AssertionSource, EnterpriseIdentity, NonInteractiveGrant,
};
pub use portcullis_metadata::AccessToken;
use provider::{KnownIssuer, ProviderSettings, UnboundSignIn};
pub use redirect::{RedirectError, RedirectParameters};
use registration::{
    ClientAuthentication, ClientCredentials, ClientInformation, ClientKey, TokenAuthMethod,
};
pub use resource_challenge::ResourceChallenge;
pub use resource_redirects::{RedirectRefusal, RefusedRedirect, ResourceRedirects};
#[cfg(any(test, feature = "test-util"))]
pub use scripted_user::ScriptedUser;
pub use server::unsupported_server::UnsupportedServer;
pub use shortened::Shortened;
pub use start_url::{StartUrl, StartUrlError};
use store::{CredentialStore, StoreError};
pub use token::resource_token::ResourceToken;
pub use token_manager::{RequestAuthorization, SignOut, TokenManager};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
