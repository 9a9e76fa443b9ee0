//! [`IssuedToken`]: an access token of this server.

use portcullis_metadata::AccessTokenClaims;

/// A valid access token of this server. It may have been revoked, or its grant may have ended.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    /// The identifier of the token, as [`Store::revoke_access_token`](crate::Store) takes it. A
    /// token without one cannot be revoked alone.
    pub id: Option<Box<str>>,
    /// The identifier of the client.
    pub client_id: Box<str>,
    /// The identifier of the grant, if the token has one.
    pub grant_id: Option<Box<str>>,
    /// All claims.
    pub claims: AccessTokenClaims,
}

/// Recognizes the access tokens of this server.
pub trait TokenVerifier: Send + Sync {
    /// Verifies an access token: its signature or handle, type, issuer and times. Returns `None`
    /// for every other string. Does not check whether the token was revoked.
    fn verify(&self, token: &str) -> Option<IssuedToken>;
}
