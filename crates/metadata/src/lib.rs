//! OAuth wire types for protected resources: documents, challenges, claims and keys, parsed and built
//! without any I/O.

mod access_token;
mod audience;
mod authorization_response;
mod authorization_server;
mod challenge;
mod claims;
mod client_document;
mod client_metadata;
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
mod uri;
mod well_known;

pub use access_token::AccessToken;
pub use audience::Audience;
pub use authorization_response::{ResponseIssuerError, check_response_issuer};
pub use authorization_server::AuthorizationServerMetadata;
pub use challenge::{
    BearerChallenge, BearerChallengeBuilder, BearerError, Challenge, ChallengeError, parse_challenges,
};
pub use claims::{AccessTokenClaims, ClaimsError, unverified_issuer};
pub use client_document::{ClientDocumentError, ClientIdMetadataDocument, ClientIdUrl};
pub use client_metadata::ClientMetadata;
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
pub use well_known::{authorization_server_urls, protected_resource_path, protected_resource_urls};
