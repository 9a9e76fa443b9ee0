//! From a protected resource's URL to an access token.
//!
//! - [`Authorizer`] gets a token: it asks the resource, takes its challenge, finds the authorization server, registers
//!   there where it has to, and runs the authorization code flow with PKCE (S256), `state`, `resource` (RFC 8707) and
//!   `iss` (RFC 9207). Any doubt ends the flow before a code or a token is sent anywhere.
//! - [`Interaction`] is the part of it that a person sees. [`LoopbackRedirect`] is for a browser on this machine;
//!   [`AutoConsent`] is for authorization servers that consent by themselves. Bring your own for anything else.
//! - [`ResourceToken`] is a token together with the one origin that it may be sent to.
//! - [`TokenManager`] keeps a resource's token: it refreshes it ahead of its end, answers refusals, and asks for more
//!   scopes where they are wanted. [`RequestAuthorization`] is one request of it, for any HTTP library.
//! - [`AuthorizeLayer`] does that for any HTTP client that is a tower service.
//! - [`CredentialStore`] is where tokens and registrations are kept, in memory or in files that their owner alone reads.
//! - [`NonInteractiveGrant`] gets tokens without a person.
//!
//! All I/O goes through [`Fetch`](portcullis_discovery::Fetch), but for the port of `LoopbackRedirect` and the files of
//! a [`CredentialStore`].
//!
//! ```
//! use std::sync::Arc;
//! use portcullis_client::{Authorizer, AuthorizerSettings, LoopbackRedirect, StartUrl};
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
//! // No server listens on this port.
//! assert_eq!(authorizer.authorize(&start).await.unwrap_err().code(), "fetch.connect");
//! # Ok(())
//! # }
//! ```

mod advice;
mod authorization;
mod authorizer;

mod error;
mod interaction;
mod provider;
mod random;
mod registration;
mod resource_challenge;
mod resource_redirects;
mod service;
mod start_url;
mod store;
#[cfg(test)]
mod testing;
mod token;
mod token_manager;

pub use advice::advice;
pub use authorization::code_flow::UnsupportedServer;
pub use authorization::redirect::{RedirectError, RedirectParameters};
pub use authorization::request::AuthorizationRequest;
pub use authorizer::device_grant::DeviceAuthorization;
pub use authorizer::grant::{AssertionError, AssertionSource, EnterpriseIdentity, NonInteractiveGrant};
pub use authorizer::settings::AuthorizerSettings;
pub use authorizer::{Authorizer, Revocation};
pub use error::ClientError;
pub use interaction::{
    AutoConsent, Interaction, InteractionError, LoopbackRedirect, RedirectAddress, RedirectAddressError,
};
pub use portcullis_metadata::AccessToken;
pub use provider::{AuthorizeParameter, AuthorizeParameterError, KnownIssuer, ProviderSettings, UnboundSignIn};
pub use registration::authentication_method::TokenAuthMethod;
pub use registration::client_key::{ClientKey, ClientKeyError};
pub use registration::credentials::{ClientAuthentication, ClientCredentials, ClientInformation};
pub use registration::dynamic::client_id_metadata_document;
pub use resource_challenge::ResourceChallenge;
pub use resource_redirects::{RedirectRefusal, RefusedRedirect, ResourceRedirects};
pub use service::{AuthorizeError, AuthorizeLayer, AuthorizeService};
pub use start_url::{StartUrl, StartUrlError};
pub use store::{CredentialStore, ImportedToken, StoreError};
pub use token::resource_token::ResourceToken;
pub use token_manager::{AccessTokenSource, AccessTokenSourceError, RequestAuthorization, SignOut, TokenManager};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
