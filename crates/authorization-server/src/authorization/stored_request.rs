//! [`StoredRequest`]: an authorization request as a server keeps it while the user answers.

use std::sync::Arc;

use portcullis_metadata::{Scopes, authorization::PkceChallenge};
use serde::{Deserialize, Serialize};

use crate::{
    authorization::AuthorizationRequest,
    client::{Client, Credential, GrantType, RedirectUri},
    policy::RefreshRequest,
};

/// An authorization request as a server keeps it while the user answers: in a record, or sealed in
/// a form. It can be serialized. What the client suggests about the user is left out.
///
/// It contains what the user sees and approves, so that a client that changes in the meantime
/// changes no running request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRequest {
    /// The identifier of the client.
    pub client_id: Box<str>,
    /// The name of the client, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<Box<str>>,
    /// Whether the client is described by the metadata document at its identifier.
    #[serde(default)]
    pub is_document: bool,
    /// The redirect URI.
    pub redirect_uri: Box<str>,
    /// The `state` that the response repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<str>>,
    /// The PKCE challenge, which is always S256.
    pub challenge: Box<str>,
    /// The scopes to grant, separated by spaces.
    pub scopes: Box<str>,
    /// The audience of the tokens, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Box<str>>,
    /// Whether the client gets a refresh token.
    pub refresh: RefreshRequest,
    /// The DPoP key to which the code is bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
}

/// Why a stored request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredRequestError {
    /// The redirect URI is invalid.
    #[error("the redirect URI of the stored request is invalid")]
    RedirectUri,
    /// The PKCE challenge is malformed.
    #[error("the PKCE challenge of the stored request is malformed")]
    Challenge,
    /// The scopes are malformed.
    #[error("the scopes of the stored request are malformed")]
    Scopes,
}

impl StoredRequestError {
    /// Returns a stable code for logs and tests.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RedirectUri => "stored_request.redirect_uri",
            Self::Challenge => "stored_request.challenge",
            Self::Scopes => "stored_request.scopes",
        }
    }
}

impl StoredRequest {
    /// Returns what to keep of a request.
    pub fn new(request: &AuthorizationRequest) -> Self {
        Self {
            client_id: request.client_id.clone(),
            client_name: request.client.name.clone(),
            is_document: request.client.is_document,
            redirect_uri: request.redirect.as_str().into(),
            state: request.state.clone(),
            challenge: request.challenge.as_str().into(),
            scopes: request.scopes.as_str().into(),
            audience: request.audience.clone(),
            refresh: request.refresh,
            key: request.key.clone(),
        }
    }

    /// Returns the request. Its client has only what the user saw: name and redirect URI, and no
    /// credential.
    ///
    /// Does not check whether the redirect URI can still be used; see
    /// [`AuthorizationRequest::check_redirect`].
    ///
    /// # Errors
    /// Fails when the record is damaged.
    pub fn restore(self) -> Result<AuthorizationRequest, StoredRequestError> {
        let redirect = RedirectUri::parse_registered(&self.redirect_uri)
            .map_err(|_| StoredRequestError::RedirectUri)?;
        let challenge =
            PkceChallenge::parse(&self.challenge).map_err(|_| StoredRequestError::Challenge)?;
        let scopes = Scopes::parse(&self.scopes).map_err(|_| StoredRequestError::Scopes)?;
        let refresh_token = (self.refresh != RefreshRequest::No).then_some(GrantType::RefreshToken);
        let client = Client {
            name: self.client_name,
            redirect_uris: vec![redirect.clone()],
            credential: Credential::None,
            grant_types: [GrantType::AuthorizationCode]
                .into_iter()
                .chain(refresh_token)
                .collect(),
            scopes: None,
            may_introspect: false,
            is_document: self.is_document,
        };
        Ok(AuthorizationRequest {
            client_id: self.client_id,
            client: Arc::new(client),
            redirect,
            state: self.state,
            challenge,
            scopes,
            audience: self.audience,
            refresh: self.refresh,
            login_hint: None,
            key: self.key,
        })
    }
}
