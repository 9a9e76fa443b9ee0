//! Authorization servers that do not follow MCP's authorization profile: what requests to them have and lack.

mod authorize_parameter;
mod known_issuers;
mod other_api;
mod request_profile;

pub use authorize_parameter::{AuthorizeParameter, AuthorizeParameterError};
pub use known_issuers::KnownIssuer;
use other_api::OtherApi;
pub(crate) use request_profile::{RequestProfile, refresh_scopes};

use portcullis_metadata::{Issuer, Scopes};

use crate::StartUrl;

/// How requests differ from MCP's profile. Known issuers ([`KnownIssuer::find`]) need none of these settings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Whether to omit `resource` (RFC 8707), for authorization servers that reject it. False by default. The token is
    /// then not bound to the resource; see [`accept_unbound_token`](Self::accept_unbound_token).
    pub omit_resource: bool,
    /// Whether the authorization server supports PKCE with S256 although its metadata has no
    /// `code_challenge_methods_supported`. False by default. A list without S256 is rejected all the same.
    pub assume_pkce: bool,
    /// Further parameters of the authorization request. None by default. A parameter replaces one of the same name that
    /// a known issuer needs, and `prompt`.
    pub parameters: Vec<AuthorizeParameter>,
    /// Whether to sign in without `resource` and without a question. When false, which is the default, the person is
    /// asked ([`Interaction::accept_unbound_token`](crate::Interaction::accept_unbound_token)), and without a person
    /// there is no token ([`ClientError::UnboundToken`](crate::ClientError::UnboundToken)). Scopes of known other APIs
    /// are rejected all the same.
    pub accept_unbound_token: bool,
}

/// A sign-in without `resource`: nothing but the scopes limits where the token is valid, and the server at the start URL
/// receives it. That server also chose the authorization server and, unless the caller names them, the scopes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnboundSignIn {
    /// The URL that the token is for.
    pub start: StartUrl,
    /// The authorization server.
    pub issuer: Issuer,
    /// The scopes to request. Empty if the authorization server decides.
    pub scopes: Scopes,
}
