#![doc = include_str!("../README.md")]

pub mod authorization;
mod challenge;
mod claims;
pub mod client;
mod discovery;
mod html_text;
mod identifier;
mod json;
mod secret;
pub mod syntax;
mod time;
mod untrusted_text;

pub use challenge::{
    BearerChallenge, BearerChallengeBuilder, BearerError, Challenge, ChallengeError,
    parse_challenges,
};
pub use claims::{
    AccessTokenClaims, ClaimsError, IntrospectionResponse, UnverifiedClaims, unverified_issuer,
};
pub use discovery::{
    AuthorizationServerMetadata, Jwk, JwkRejection, JwkSet, ProtectedResourceMetadata, RejectedJwk,
    authorization_server_urls, protected_resource_path, protected_resource_urls,
};
pub use html_text::HtmlText;
pub use identifier::{
    Audience, Issuer, IssuerError, ResourceUri, ResourceUriError, Scopes, ScopesError,
};
pub use json::DocumentError;
pub use secret::{AccessToken, Secret};
pub use time::{Clock, Now, SystemClock, UnixTime};
pub use untrusted_text::EscapedText;
