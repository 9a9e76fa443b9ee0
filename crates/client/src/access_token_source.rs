//! [`AccessTokenSource`]: access tokens that another program or library obtains.

use portcullis_discovery::BoxFuture;
use portcullis_metadata::authorization::TokenResponse;

/// A source of access tokens that this crate does not obtain.
pub trait AccessTokenSource: Send + Sync + 'static {
    /// Obtains a bearer token. It is called for the first request, shortly before the token
    /// expires, and once after the resource rejects the token.
    ///
    /// # Errors
    /// When there is no token; the message has the cause without the token.
    fn access_token(&self) -> BoxFuture<'_, Result<TokenResponse, AccessTokenSourceError>>;
}

/// Why a source provides no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessTokenSourceError(String);

impl AccessTokenSourceError {
    /// An error with this cause. It is shown to the user and must not contain a token.
    pub fn new(cause: impl Into<String>) -> Self {
        Self(cause.into())
    }
}
