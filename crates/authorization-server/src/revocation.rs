//! The revocation endpoint (RFC 7009).

use crate::{
    error::{ErrorCode, ErrorResponse},
    issued_token::TokenVerifier,
    params::Params,
    store::{Store, StoreError},
};

/// Revokes the token in a form for an authenticated client (RFC 7009 section 2). A refresh token
/// ends its grant; an access token ends alone. Returns whether there was a token: the response for
/// any other string is a success as well (section 2.2).
///
/// # Errors
/// Fails with `invalid_request` when `token` is missing, or the token was issued to another client,
/// and when the revocation cannot be stored.
pub async fn revoke(
    store: &impl Store,
    tokens: &impl TokenVerifier,
    client_id: &str,
    form: &Params,
) -> Result<bool, ErrorResponse> {
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "token is missing");
    let token = form.get("token")?.ok_or(missing)?;
    if let Some(grant) = store.find_refresh_token(token).await? {
        check_owner(client_id, &grant.client_id)?;
        store.end_grant(&grant.id).await?;
    } else if let Some(token) = tokens.verify(token) {
        check_owner(client_id, &token.client_id)?;
        if let Some(id) = &token.id {
            store
                .revoke_access_token(id)
                .await
                .map_err(revocation_error)?;
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn check_owner(client_id: &str, owner: &str) -> Result<(), ErrorResponse> {
    if client_id == owner {
        return Ok(());
    }
    Err(ErrorResponse::new(
        ErrorCode::InvalidRequest,
        "the token was issued to another client",
    ))
}

fn revocation_error(error: StoreError) -> ErrorResponse {
    match error {
        StoreError::Full => ErrorResponse::new(
            ErrorCode::TemporarilyUnavailable,
            "too many tokens are revoked; try again later",
        ),
        error => error.into(),
    }
}
