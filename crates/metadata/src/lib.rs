#![doc = include_str!("../README.md")]

mod authorization;
mod challenge;
mod claims;
mod client;
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
pub use encoded_path_syntax::has_encoded_path_syntax;
pub use hexadecimal::hexadecimal;
pub use identifier::{
    Audience, Issuer, IssuerError, ResourceUri, ResourceUriError, Scopes, ScopesError, is_https_or_loopback_http,
    is_loopback, is_uuid,
};
pub use json::DocumentError;
pub use media_type::{has_media_type, is_event_stream};
pub use query::{QUERY_SEPARATORS, has_access_token_parameter, is_access_token_parameter, query_parameter_name};
pub use secret::{AccessToken, Secret};
pub use time::{Clock, SystemClock, UnixTime};
pub use untrusted_text::EscapedText;
pub use url_without_secrets::url_without_secrets;
pub use wildcard::Wildcard;
