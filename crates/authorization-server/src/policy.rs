//! [`Policy`]: what a server decides about the requests of its clients.

use portcullis_metadata::{Issuer, Scopes};

use crate::{
    client::{Client, RedirectUri},
    error::ErrorResponse,
    params::Params,
};

/// What a server decides about the requests of its clients.
///
/// [`scopes`](crate::scopes) and [`resource`](crate::resource) have the rules of the RFCs, from
/// which an implementation is put together.
pub trait Policy: Send + Sync {
    /// Returns the issuer for the parameter `iss` of authorization responses. `None` omits it,
    /// which leaves clients open to mix-up attacks (RFC 9700 section 4.4).
    fn response_issuer(&self) -> Option<&Issuer>;

    /// Returns whether authorization responses may be sent to this redirect URI, which the client
    /// registered. It is called at authorization and again when a code is exchanged. The default is
    /// `true`, for servers that check redirect URIs at registration only.
    fn is_usable_redirect(&self, _uri: &RedirectUri) -> bool {
        true
    }

    /// Returns the scopes to grant for a request of this client.
    ///
    /// # Errors
    /// Fails with `invalid_scope` when no scope can be granted, or `scope` is malformed.
    fn scopes(&self, client: &Client, params: &Params) -> Result<Scopes, ErrorResponse>;

    /// Returns the scopes of a refresh request. `None` means all that were granted.
    ///
    /// # Errors
    /// Fails when `scope` is malformed, or missing although the server requires it.
    fn refresh_scopes(&self, params: &Params) -> Result<Option<Scopes>, ErrorResponse>;

    /// Returns the audience of the tokens for a request. `None` means tokens without an audience.
    ///
    /// # Errors
    /// Fails with `invalid_target` when the resource is malformed, unknown, repeated, or missing
    /// without a default.
    fn audience(&self, params: &Params) -> Result<Option<Box<str>>, ErrorResponse>;

    /// Checks the resource of a token request as far as this is possible without the grant.
    ///
    /// # Errors
    /// Fails with `invalid_target` when the request has several resources.
    fn check_single_resource(&self, params: &Params) -> Result<(), ErrorResponse>;

    /// Checks the resource of a token request against the audience of the grant (RFC 8707 section
    /// 2.2).
    ///
    /// # Errors
    /// Fails with `invalid_target` when it is another one.
    fn check_audience(&self, params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse>;

    /// Returns whether a client gets a refresh token for a request with these scopes.
    ///
    /// # Errors
    /// Fails when a parameter on which this depends is repeated.
    fn refresh(
        &self,
        client: &Client,
        params: &Params,
        scopes: &Scopes,
    ) -> Result<RefreshRequest, ErrorResponse>;
}

/// Whether a client gets a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshRequest {
    /// No.
    No,
    /// Yes.
    Yes,
    /// Only if the user never approved this client before.
    FirstApproval,
}
