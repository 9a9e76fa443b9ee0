//! The refresh token grant.

use portcullis_metadata::Scopes;

use crate::{
    authentication::AuthenticatedClient,
    error::{ErrorCode, ErrorResponse},
    grant::Grant,
    params::Params,
    policy::Policy,
    store::{Rotation, Store},
    token::{GrantedTokens, TokenError},
};

/// Exchanges a refresh token for the next one (RFC 6749 section 6, OAuth 2.1). `key` is the
/// thumbprint of the DPoP key of the request, if any.
///
/// Client, DPoP key, resource and scopes are checked within the operation that replaces the token.
/// The reuse of a replaced token ends the grant (RFC 9700 section 4.14.2).
///
/// # Errors
/// Fails when a parameter is missing or wrong, or the token is unknown, expired, revoked, or
/// replaced.
pub async fn refresh(
    policy: &impl Policy,
    store: &impl Store,
    client: &AuthenticatedClient,
    form: &Params,
    key: Option<&str>,
) -> Result<GrantedTokens, TokenError> {
    let request = RefreshCheck::new(policy, client, form, key)?;
    let check = |grant: &Grant| request.check(grant);
    match store.rotate_refresh_token(request.token, check).await? {
        // Only this access token has fewer scopes. The grant keeps all of its own.
        Rotation::Rotated {
            grant,
            refresh_token,
        } => Ok(GrantedTokens {
            scopes: request.scopes.unwrap_or_else(|| grant.scopes.clone()),
            grant,
            refresh_token,
        }),
        Rotation::Rejected(error) => Err(error.into()),
        Rotation::Replayed(grant_id) => {
            store.end_grant(&grant_id).await?;
            Err(TokenError::Replayed(invalid_grant(
                "the refresh token was used before: its session is withdrawn",
            )))
        }
        Rotation::Unknown => {
            Err(invalid_grant("the refresh token is unknown, expired or revoked").into())
        }
    }
}

/// What [`refresh`] checks of a grant. A server that must ask somebody else about the user first
/// reads the grant with [`Store::find_refresh_token`], checks it, asks, and then calls [`refresh`],
/// which checks it again. A request that fails the check thereby causes no other request, and a
/// user who lost access no rotation.
pub struct RefreshCheck<'a, P> {
    policy: &'a P,
    client: &'a AuthenticatedClient,
    form: &'a Params,
    key: Option<&'a str>,
    token: &'a str,
    /// The requested scopes, if any are requested.
    scopes: Option<Scopes>,
}

impl<'a, P: Policy> RefreshCheck<'a, P> {
    /// Parses the parameters of a refresh request. `key` is the thumbprint of the DPoP key of the
    /// request, if any.
    ///
    /// # Errors
    /// Fails when a parameter is missing, malformed or repeated.
    pub fn new(
        policy: &'a P,
        client: &'a AuthenticatedClient,
        form: &'a Params,
        key: Option<&'a str>,
    ) -> Result<Self, ErrorResponse> {
        let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "refresh_token is missing");
        Ok(Self {
            policy,
            client,
            form,
            key,
            token: form.get("refresh_token")?.ok_or(missing)?,
            scopes: policy.refresh_scopes(form)?,
        })
    }

    /// Returns the refresh token of the request.
    pub const fn token(&self) -> &'a str {
        self.token
    }

    /// Checks that the grant is one of this client, and covers the DPoP key, the resource and the
    /// scopes of the request. Changes nothing.
    ///
    /// # Errors
    /// Fails with the error for the client.
    pub fn check(&self, grant: &Grant) -> Result<(), ErrorResponse> {
        if grant.client_id != self.client.id {
            return Err(invalid_grant(
                "the refresh token was issued to another client",
            ));
        }
        if grant.key.is_some() && grant.key.as_deref() != self.key {
            return Err(invalid_grant(
                "the refresh token is bound to a DPoP key, but the request has no proof with that key",
            ));
        }
        self.policy
            .check_audience(self.form, grant.audience.as_deref())?;
        match &self.scopes {
            Some(scopes) if scopes.is_empty() || !grant.scopes.covers(scopes) => {
                Err(invalid_scope("scope has a scope that was not granted"))
            }
            _ => Ok(()),
        }
    }
}

const fn invalid_grant(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}

const fn invalid_scope(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
