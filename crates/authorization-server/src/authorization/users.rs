//! [`Users`]: answers who the user of a request is.

use std::future::Future;

use http::HeaderMap;
use portcullis_metadata::UnixTime;

use crate::{
    authorization::{AuthorizationError, AuthorizationRequest},
    client::ClientDirectory,
    params::Params,
    policy::Policy,
};

/// A user who approved a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The `sub` of the tokens: stable, unique in this server, and never reassigned (OpenID Connect
    /// Core section 5.7).
    pub subject: Box<str>,
    /// When the user signed in.
    pub auth_time: UnixTime,
}

/// Answers who the user of a request is, and whether this user approves it.
pub trait Users: Send + Sync {
    /// What the browser gets if the user must be asked first: a page, or a redirect to a provider.
    type Reply: Send;
    /// Why the user cannot be asked.
    type Error: Send;

    /// Identifies the user of a valid request. An implementation that returns
    /// [`Authorization::Ask`] keeps the request, and continues with the user's answer. It must bind
    /// the request to the browser that gets the reply, use it once, and forget it after minutes:
    /// otherwise somebody else can answer, or one answer counts twice (RFC 9700 section 4.7).
    ///
    /// # Errors
    /// Fails when the user cannot be asked.
    fn identify(
        &self,
        request: AuthorizationRequest,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Authorization<Self::Reply>, Self::Error>> + Send;
}

/// How an authorization request continues.
#[derive(Debug)]
pub enum Authorization<R> {
    /// The user is known and approves the request. A code can be issued.
    Approved(Box<AuthorizationRequest>, User),
    /// The user must be asked first.
    Ask(R),
    /// The request is rejected.
    Rejected(AuthorizationError),
}

/// Validates an authorization request, and identifies its user. The user is identified only for a
/// valid request. An error that names no redirect URI ([`AuthorizationError::Untrusted`]) must be
/// shown to the user.
///
/// # Errors
/// Fails as [`Users::identify`]. An invalid request is [`Authorization::Rejected`].
pub async fn authorize<U: Users>(
    policy: &impl Policy,
    clients: &impl ClientDirectory,
    users: &U,
    params: &Params,
    headers: &HeaderMap,
) -> Result<Authorization<U::Reply>, U::Error> {
    match AuthorizationRequest::parse(policy, clients, params, headers).await {
        Ok(request) => users.identify(request, headers).await,
        Err(error) => Ok(Authorization::Rejected(error)),
    }
}
