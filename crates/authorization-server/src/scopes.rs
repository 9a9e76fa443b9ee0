//! The scopes of a request (RFC 6749 section 3.3).

use portcullis_metadata::Scopes;

use crate::{
    client::{Client, GrantType},
    error::{ErrorCode, ErrorResponse},
    params::Params,
};

/// The scope with which a client requests a refresh token (OpenID Connect Core section 11).
pub const OFFLINE_ACCESS: &str = "offline_access";

/// Parses the parameter `scope`, if present.
///
/// # Errors
/// Fails with `invalid_scope` when it has a character that scopes cannot have, and with
/// `invalid_request` when it is repeated.
pub fn parse_scopes(params: &Params) -> Result<Option<Scopes>, ErrorResponse> {
    let Some(requested) = params.get("scope")? else {
        return Ok(None);
    };
    match Scopes::parse(requested) {
        Ok(scopes) => Ok(Some(scopes)),
        Err(_) => Err(invalid(
            "scope has a character that is not allowed in scope names",
        )),
    }
}

/// Returns the scopes that a client may have: those of the server, or those of them with which it
/// is configured.
pub fn available_scopes(supported: &Scopes, client: &Client) -> Scopes {
    client.scopes.as_ref().map_or_else(
        || supported.clone(),
        |scopes| scopes.intersection(supported),
    )
}

/// Returns the scopes to grant: those of the requested ones that the client may have, or all of
/// them if none is requested. [`OFFLINE_ACCESS`] is granted if it is requested, and the client may
/// use refresh tokens.
///
/// # Errors
/// Fails with `invalid_scope` when no scope can be granted.
pub fn grant_scopes(
    supported: &Scopes,
    client: &Client,
    requested: Option<&Scopes>,
) -> Result<Scopes, ErrorResponse> {
    let available = available_scopes(supported, client);
    let granted = match requested {
        None => available,
        Some(requested) => {
            let granted = requested.intersection(&available);
            if requested.contains(OFFLINE_ACCESS) && client.may_use(GrantType::RefreshToken) {
                granted.union(&Scopes::from_names([OFFLINE_ACCESS]).unwrap_or_default())
            } else {
                granted
            }
        }
    };
    if granted.is_empty() {
        Err(invalid("none of the requested scopes can be granted"))
    } else {
        Ok(granted)
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
