//! Authorization servers that differ from MCP's authorization profile, and the requests to them.

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

/// How requests differ from MCP's profile. Known issuers ([`KnownIssuer::find`]) do not need these
/// settings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Whether to omit `resource` (RFC 8707), for authorization servers that reject it. False by
    /// default. The token is then not bound to the resource; see
    /// [`accept_unbound_token`](Self::accept_unbound_token).
    pub omit_resource: bool,
    /// Whether the authorization server supports PKCE with S256 although its metadata has no
    /// `code_challenge_methods_supported`. False by default. A list without S256 is still rejected.
    pub assume_pkce: bool,
    /// Further parameters of the authorization request. None by default. A parameter replaces one
    /// of the same name that a known issuer needs, and `prompt`.
    pub parameters: Vec<AuthorizeParameter>,
    /// Whether to sign in without `resource` and without asking the user. When false, which is the
    /// default, the user is asked
    /// ([`Interaction::accept_unbound_token`](crate::Interaction::accept_unbound_token)); without a
    /// user the sign-in fails ([`ClientError::UnboundToken`](crate::ClientError::UnboundToken)).
    /// Scopes of known other APIs are still rejected.
    pub accept_unbound_token: bool,
}

/// A sign-in without `resource`: only the scopes limit where the token is valid, and the server at
/// the start URL receives it. That server also chose the authorization server and, unless the
/// caller sets them, the scopes.
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
