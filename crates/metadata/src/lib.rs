//! OAuth wire types for protected resources: the documents, challenges, claims and keys that clients,
//! authorization servers and resources exchange, parsed strictly and built safely, without any I/O.
//!
//! # What is in it
//!
//! | concern | types | defined by |
//! |---|---|---|
//! | identifiers | [`Issuer`], [`ResourceUri`], [`Scopes`], [`Audience`], [`ClientIdUrl`] | RFC 8414, 8707, 6749, 7519 |
//! | what a resource says of itself | [`ProtectedResourceMetadata`] | RFC 9728 |
//! | what an authorization server says of itself | [`AuthorizationServerMetadata`], [`JwkSet`] | RFC 8414, 7517, OpenID Connect Discovery |
//! | where those are found | [`protected_resource_urls`], [`authorization_server_urls`] | RFC 9728, 8414 |
//! | refusals | [`parse_challenges`], [`BearerChallenge`], [`BearerChallengeBuilder`] | RFC 9110, 6750, 9728 |
//! | tokens, seen by the resource | [`AccessTokenClaims`], [`IntrospectionResponse`] | RFC 9068, 7662 |
//! | tokens, seen by the client | [`TokenResponse`], [`OAuthError`], [`AccessToken`], [`Secret`] | RFC 6749 |
//! | registration | [`ClientRegistrationRequest`], [`ClientRegistrationResponse`], [`ClientIdMetadataDocument`] | RFC 7591 |
//! | authorization | [`PkceVerifier`], [`PkceChallenge`], [`check_response_issuer`] | RFC 7636, 9207 |
//! | time | [`Clock`], [`UnixTime`] | |
//!
//! # Example
//!
//! A client reads the refusal of a resource, and learns where the resource's metadata is:
//!
//! ```
//! use portcullis_metadata::{BearerChallenge, ProtectedResourceMetadata, authorization_server_urls, parse_challenges};
//!
//! let refusal: [&[u8]; 2] = [
//!     b"Negotiate",
//!     br#"Bearer realm="mcp", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#,
//! ];
//! let challenges = parse_challenges(refusal)?;
//! let challenge = BearerChallenge::from_challenges(&challenges).expect("a bearer challenge");
//! assert_eq!(
//!     challenge.resource_metadata.as_deref(),
//!     Some("https://mcp.example/.well-known/oauth-protected-resource/mcp")
//! );
//!
//! // ... and, once it has fetched that document, where to look for the authorization server's.
//! let metadata = ProtectedResourceMetadata::parse(
//!     br#"{"resource":"https://mcp.example/mcp","authorization_servers":["https://as.example/realms/a"]}"#,
//! )?;
//! let urls = authorization_server_urls(&metadata.authorization_servers[0]);
//! assert_eq!(urls[0].as_str(), "https://as.example/.well-known/oauth-authorization-server/realms/a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What every parser does
//!
//! - Input is untrusted: nothing panics, and work and memory are linear in the input's size. Only challenges are
//!   bounded here; bound documents where you fetch them.
//! - A document is one JSON object with each top-level member once. A known member of the wrong type is an error
//!   that names the member and never repeats its value; unknown members are kept in `extra`.
//! - Parsing says that a value is well formed. It does not say that it is meant for you: whether a document's issuer
//!   is the one that was asked, whether a token has ended, and which addresses may be called is for the caller.
//! - Identifiers keep their text and are compared by it, byte for byte. Tokens and secrets are wiped from memory
//!   when dropped, and print as `[redacted]`.

mod access_token;
mod audience;
mod authorization_response;
mod authorization_server;
mod challenge;
mod claims;
mod client_document;
mod client_metadata;
mod client_secret_basic;
mod clock;
mod constant_time;
mod document;
mod introspection;
mod issuer;
mod json;
mod jwk_set;
mod numeric_date;
mod oauth_error;
mod pkce;
mod protected_resource;
mod registration;
mod resource_uri;
mod scopes;
mod secret;
mod token;
mod untrusted_text;
mod uri;
mod well_known;

pub use access_token::AccessToken;
pub use audience::Audience;
pub use authorization_response::{ResponseIssuerError, check_response_issuer};
pub use authorization_server::AuthorizationServerMetadata;
pub use challenge::{
    BearerChallenge, BearerChallengeBuilder, BearerError, Challenge, ChallengeError, parse_challenges,
};
pub use claims::{AccessTokenClaims, ClaimsError, UnverifiedClaims, unverified_issuer};
pub use client_document::{ClientDocumentError, ClientIdMetadataDocument, ClientIdUrl};
pub use client_metadata::ClientMetadata;
pub use client_secret_basic::client_secret_basic;
pub use clock::{Clock, SystemClock, UnixTime};
pub use document::DocumentError;
pub use introspection::IntrospectionResponse;
pub use issuer::{Issuer, IssuerError, is_https_or_loopback_http, is_loopback};
pub use jwk_set::{Jwk, JwkRejection, JwkSet, RejectedJwk};
pub use oauth_error::OAuthError;
pub use pkce::{PkceChallenge, PkceError, PkceVerifier};
pub use protected_resource::ProtectedResourceMetadata;
pub use registration::{ClientRegistrationRequest, ClientRegistrationResponse, RegistrationError};
pub use resource_uri::{ResourceUri, ResourceUriError};
pub use scopes::{Scopes, ScopesError};
pub use secret::Secret;
pub use token::TokenResponse;
pub use untrusted_text::EscapedText;
pub use well_known::{authorization_server_urls, protected_resource_path, protected_resource_urls};
