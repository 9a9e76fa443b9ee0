//! The refresh token grant.

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
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "refresh_token is missing");
    let presented = form.get("refresh_token")?.ok_or(missing)?;
    let requested = policy.refresh_scopes(form)?;

    let check = |grant: &Grant| {
        if grant.client_id != client.id {
            return Err(invalid_grant(
                "the refresh token was issued to another client",
            ));
        }
        if grant.key.is_some() && grant.key.as_deref() != key {
            return Err(invalid_grant(
                "the refresh token is bound to a DPoP key, but the request has no proof with that key",
            ));
        }
        policy.check_audience(form, grant.audience.as_deref())?;
        match &requested {
            Some(scopes) if scopes.is_empty() || !grant.scopes.covers(scopes) => {
                Err(invalid_scope("scope has a scope that was not granted"))
            }
            _ => Ok(()),
        }
    };
    match store.rotate_refresh_token(presented, check).await? {
        // Only this access token has fewer scopes. The grant keeps all of its own.
        Rotation::Rotated {
            grant,
            refresh_token,
        } => Ok(GrantedTokens {
            scopes: requested.clone().unwrap_or_else(|| grant.scopes.clone()),
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

const fn invalid_grant(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}

const fn invalid_scope(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
