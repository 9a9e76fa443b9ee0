#![doc = include_str!("../README.md")]

pub mod authorization;
mod challenge;
mod claims;
pub mod client;
mod discovery;
mod encoded_path_syntax;
mod hexadecimal;
mod identifier;
mod json;
mod media_type;
mod query;
mod secret;
mod time;
mod untrusted_text;
mod url_without_secrets;
mod wildcard;

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
pub use identifier::{
    Audience, Issuer, IssuerError, ResourceUri, ResourceUriError, Scopes, ScopesError,
};
pub use json::DocumentError;
pub use secret::{AccessToken, Secret};
pub use time::{Clock, Now, SystemClock, UnixTime};
pub use untrusted_text::EscapedText;

/// Helpers that the crates of this workspace share. They are not part of the public API and can
/// change in any release.
#[doc(hidden)]
pub use self::{
    encoded_path_syntax::has_encoded_path_syntax,
    hexadecimal::hexadecimal,
    identifier::{is_https_or_loopback_http, is_loopback, is_uuid},
    media_type::{has_media_type, is_event_stream},
    query::{
        QUERY_SEPARATORS, has_access_token_parameter, is_access_token_parameter,
        query_parameter_name,
    },
    url_without_secrets::url_without_secrets,
    wildcard::Wildcard,
};
