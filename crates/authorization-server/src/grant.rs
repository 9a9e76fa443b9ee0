//! [`Grant`]: what a user approved, and the code that a client exchanges for it.

use portcullis_metadata::{Scopes, UnixTime, authorization::PkceChallenge};

use crate::{
    authorization::{AuthorizationRequest, Thumbprint, User},
    random::{RandomError, random_secret},
};

/// What a user approved: the tokens of one client for one audience. Refresh tokens continue it.
#[derive(Clone, Debug)]
pub struct Grant {
    /// A random identifier, which is the `sid` of the access tokens.
    pub id: Box<str>,
    /// The identifier of the client.
    pub client_id: Box<str>,
    /// The `sub` of the tokens.
    pub subject: Box<str>,
    /// When the user signed in.
    pub auth_time: UnixTime,
    /// The scopes of the grant. An access token can have fewer.
    pub scopes: Scopes,
    /// The audience of the tokens, if they have one.
    pub audience: Option<Box<str>>,
    /// The DPoP key to which a public client's refresh tokens are bound (RFC 9449 section 5).
    pub key: Option<Thumbprint>,
}

/// What an authorization code stands for (RFC 6749 section 4.1.2).
#[derive(Clone, Debug)]
pub struct AuthorizationCode {
    /// The grant, which begins when the code is exchanged.
    pub grant: Grant,
    /// The redirect URI of the authorization request.
    pub redirect_uri: Box<str>,
    /// The PKCE challenge, which is always S256.
    pub challenge: PkceChallenge,
    /// The DPoP key to which the code is bound (RFC 9449 section 10).
    pub key: Option<Thumbprint>,
    /// Whether the client gets a refresh token.
    pub is_refreshable: bool,
}

impl Grant {
    /// Creates the grant of a request that this user approved.
    ///
    /// # Errors
    /// Fails when the operating system gives no random bytes.
    pub fn new(request: &AuthorizationRequest, user: User) -> Result<Self, RandomError> {
        Ok(Self {
            id: random_secret(16)?.secret().into(),
            client_id: request.client_id.clone(),
            subject: user.subject,
            auth_time: user.auth_time,
            scopes: request.scopes.clone(),
            audience: request.audience.clone(),
            key: None,
        })
    }
}

impl AuthorizationCode {
    /// Binds a code to the request whose grant it stands for.
    pub fn new(request: &AuthorizationRequest, grant: Grant, is_refreshable: bool) -> Self {
        Self {
            grant,
            redirect_uri: request.redirect.as_str().into(),
            challenge: request.challenge.clone(),
            key: request.key.clone(),
            is_refreshable,
        }
    }
}
