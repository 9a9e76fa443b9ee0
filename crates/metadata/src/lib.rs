//! OAuth wire types for protected resources: metadata documents, challenges, claims, key sets and registration messages.
//! Parsing is strict, and the crate does no I/O.
//!
//! # Contents
//!
//! | concern | types | defined by |
//! |---|---|---|
//! | identifiers | [`Issuer`], [`ResourceUri`], [`Scopes`], [`Audience`], [`ClientIdUrl`] | RFC 8414, 8707, 6749, 7519 |
//! | resource metadata | [`ProtectedResourceMetadata`] | RFC 9728 |
//! | authorization server metadata and keys | [`AuthorizationServerMetadata`], [`JwkSet`] | RFC 8414, 7517, OpenID Connect Discovery |
//! | well-known URLs | [`protected_resource_urls`], [`authorization_server_urls`] | RFC 9728, 8414 |
//! | challenges | [`parse_challenges`], [`BearerChallenge`], [`BearerChallengeBuilder`] | RFC 9110, 6750, 9728 |
//! | token claims and introspection | [`AccessTokenClaims`], [`IntrospectionResponse`] | RFC 9068, 7662 |
//! | token responses and secrets | [`TokenResponse`], [`OAuthError`], [`AccessToken`], [`Secret`] | RFC 6749 |
//! | registration | [`ClientRegistrationRequest`], [`ClientRegistrationResponse`], [`ClientIdMetadataDocument`] | RFC 7591 |
//! | authorization | [`PkceVerifier`], [`PkceChallenge`], [`check_response_issuer`] | RFC 7636, 9207 |
//! | media types | [`is_event_stream`], [`has_media_type`] | RFC 9110 |
//! | patterns and time | [`wildcard_matches`], [`Clock`], [`UnixTime`] | |
//! | access tokens in queries | [`has_access_token_parameter`], [`query_parameter_name`] | RFC 6750 |
//!
//! # Example
//!
//! A client reads a resource's challenge to find the resource's metadata:
//!
//! ```
//! use portcullis_metadata::{BearerChallenge, ProtectedResourceMetadata, authorization_server_urls, parse_challenges};
//!
//! let www_authenticate: [&[u8]; 2] = [
//!     b"Negotiate",
//!     br#"Bearer realm="mcp", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#,
//! ];
//! let challenges = parse_challenges(www_authenticate)?;
//! let challenge = BearerChallenge::from_challenges(&challenges).expect("a bearer challenge");
//! assert_eq!(
//!     challenge.resource_metadata.as_deref(),
//!     Some("https://mcp.example/.well-known/oauth-protected-resource/mcp")
//! );
//!
//! // The client fetches that document. It names the authorization servers.
//! let metadata = ProtectedResourceMetadata::parse(
//!     br#"{"resource":"https://mcp.example/mcp","authorization_servers":["https://as.example/realms/a"]}"#,
//! )?;
//! let urls = authorization_server_urls(&metadata.authorization_servers[0]);
//! assert_eq!(urls[0].as_str(), "https://as.example/.well-known/oauth-authorization-server/realms/a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules for every parser
//!
//! - Input is untrusted. No input causes a panic, and time and memory are linear in the input's size. The crate limits
//!   the size of challenges only; the caller limits the size of documents when it fetches them.
//! - A document is one JSON object without duplicate top-level members. A known member of the wrong type is an error.
//!   The error names the member and never contains its value. Unknown members are kept in `extra`.
//! - Parsing checks the syntax only. The caller checks that a document's issuer is the expected one, that a token has
//!   not expired, and that an address may be called.
//! - Identifiers keep their original string and are compared byte for byte. Tokens and secrets are wiped from memory
//!   on drop, and `Debug` prints `[redacted]`.

mod authorization;
mod challenge;
mod claims;
mod client;
mod discovery;
mod identifier;
mod json;
mod media_type;
mod query;
mod secret;
mod time;
mod untrusted_text;
mod wildcard;

pub use authorization::{
    DeviceAuthorizationResponse, OAuthError, PkceChallenge, PkceError, PkceVerifier, ResponseIssuerError,
    TokenResponse, check_response_issuer,
};
pub use challenge::{
    BearerChallenge, BearerChallengeBuilder, BearerError, Challenge, ChallengeError, parse_challenges,
};
pub use claims::{AccessTokenClaims, ClaimsError, IntrospectionResponse, UnverifiedClaims, unverified_issuer};
pub use client::{
    ClientDocumentError, ClientIdMetadataDocument, ClientIdUrl, ClientMetadata, ClientRegistrationRequest,
    ClientRegistrationResponse, RegistrationError, client_secret_basic,
};
pub use discovery::{
    AuthorizationServerMetadata, Jwk, JwkRejection, JwkSet, ProtectedResourceMetadata, RejectedJwk,
    authorization_server_urls, protected_resource_path, protected_resource_urls,
};
pub use identifier::{
    Audience, Issuer, IssuerError, ResourceUri, ResourceUriError, Scopes, ScopesError, is_https_or_loopback_http,
    is_loopback,
};
pub use json::DocumentError;
pub use media_type::{has_media_type, is_event_stream};
pub use query::{QUERY_SEPARATORS, has_access_token_parameter, is_access_token_parameter, query_parameter_name};
pub use secret::{AccessToken, Secret};
pub use time::{Clock, SystemClock, UnixTime};
pub use untrusted_text::EscapedText;
pub use wildcard::wildcard_matches;
