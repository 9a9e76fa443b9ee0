//! The authorization code grant.

use crate::{
    authentication::AuthenticatedClient,
    client::RedirectUri,
    error::{ErrorCode, ErrorResponse},
    grant::AuthorizationCode,
    params::Params,
    policy::Policy,
    store::{Redemption, Store},
    token::{GrantedTokens, TokenError},
};

/// Exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). `key` is the thumbprint of the
/// DPoP key of the request, if any.
///
/// Client, redirect URI, PKCE verifier, resource and DPoP key are checked within the operation that
/// consumes the code, and whether the redirect URI is still usable. A second use ends the grant.
///
/// # Errors
/// Fails when a parameter is missing or wrong, or the code is unknown, expired, or used.
pub async fn exchange_code(
    policy: &impl Policy,
    store: &impl Store,
    client: &AuthenticatedClient,
    form: &Params,
    key: Option<&str>,
) -> Result<GrantedTokens, TokenError> {
    let missing = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
    let invalid = |description| ErrorResponse::new(ErrorCode::InvalidGrant, description);
    let code = form.get("code")?.ok_or(missing("code is missing"))?;
    let verifier = form
        .get("code_verifier")?
        .ok_or(missing("PKCE is required: code_verifier is missing"))?;
    let redirect_uri = form.get("redirect_uri")?;
    policy.check_single_resource(form)?;

    let check = |code: &AuthorizationCode| {
        if code.grant.client_id != client.id {
            return Err(invalid("the code was issued to another client"));
        }
        // OAuth 2.1 clients may omit `redirect_uri`. If it is present, it must be identical.
        if redirect_uri.is_some_and(|uri| uri != &*code.redirect_uri) {
            return Err(invalid(
                "redirect_uri is not that of the authorization request",
            ));
        }
        if !code.challenge.matches(verifier) {
            return Err(invalid("code_verifier does not match the code_challenge"));
        }
        policy.check_audience(form, code.grant.audience.as_deref())?;
        let redirect = RedirectUri::parse_registered(&code.redirect_uri);
        if !redirect.is_ok_and(|redirect| policy.is_usable_redirect(&redirect)) {
            return Err(invalid("the redirect URI is no longer allowed"));
        }
        if code.key.is_some() && code.key.as_deref() != key {
            return Err(invalid(
                "the code is bound to a DPoP key, but the request has no proof with that key",
            ));
        }
        Ok(())
    };
    let bound_key = key.filter(|_| client.client.credential.is_public());
    match store.redeem_code(code, bound_key, check).await? {
        Redemption::Redeemed {
            grant,
            refresh_token,
        } => Ok(GrantedTokens {
            scopes: grant.scopes.clone(),
            grant,
            refresh_token,
        }),
        Redemption::Rejected(error) => Err(error.into()),
        Redemption::Used(grant) => {
            store.end_grant(&grant.id).await?;
            Err(TokenError::Replayed(invalid("the code was used before")))
        }
        Redemption::Unknown => Err(invalid("the code is unknown or expired").into()),
    }
}
