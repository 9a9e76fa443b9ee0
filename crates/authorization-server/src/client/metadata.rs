//! Validates the metadata of a client that describes itself: in a registration (RFC 7591 section 2)
//! or in its metadata document.

use portcullis_metadata::{
    JwkSet,
    client::{ClientMetadata, ClientRegistrationRequest},
};

use crate::{
    client::{Credential, GrantType, RedirectUri, RedirectUriError},
    error::{ErrorCode, ErrorResponse},
};

/// The only supported response type.
pub(super) const RESPONSE_TYPE: &str = "code";
const MAX_REDIRECT_URIS: usize = 10;
const MAX_NAME_CHARS: usize = 100;

/// Parses the body of a registration request (RFC 7591 section 3.1). Does not validate the
/// metadata; see [`NewClient`](crate::client::NewClient).
///
/// # Errors
/// Fails with `invalid_client_metadata` when the body is not a JSON object whose members have the
/// types of RFC 7591.
pub fn parse_registration(body: &[u8]) -> Result<ClientMetadata, ErrorResponse> {
    match ClientRegistrationRequest::parse(body) {
        Ok(request) => Ok(request.metadata),
        Err(_) => Err(invalid(
            "the body must be a JSON object whose members have the types of RFC 7591",
        )),
    }
}

/// Returns the name for the consent page, if the client has one.
pub(super) fn parse_name(metadata: &ClientMetadata) -> Result<Option<Box<str>>, ErrorResponse> {
    let Some(name) = metadata
        .client_name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid(
            "client_name must have at most 100 characters and no control characters",
        ));
    }
    Ok(Some(name.into()))
}

/// Returns the redirect URIs. At least one is required.
pub(super) fn parse_redirect_uris(
    metadata: &ClientMetadata,
) -> Result<Vec<RedirectUri>, ErrorResponse> {
    let reject = |description| ErrorResponse::new(ErrorCode::InvalidRedirectUri, description);
    let uris = &metadata.redirect_uris;
    if uris.is_empty() || uris.len() > MAX_REDIRECT_URIS {
        return Err(reject("redirect_uris must have 1 to 10 entries"));
    }
    let parsed: Result<_, RedirectUriError> =
        uris.iter().map(|uri| RedirectUri::parse(uri)).collect();
    parsed.map_err(|error| reject(error.description()))
}

/// Returns those of the requested grant types that a client may have without being configured.
pub(super) fn parse_grant_types(
    metadata: &ClientMetadata,
) -> Result<Vec<GrantType>, ErrorResponse> {
    let requests = |grant_type: GrantType| {
        metadata
            .grant_types
            .iter()
            .any(|name| name == grant_type.as_str())
    };
    let uses_codes = metadata.grant_types.is_empty() || requests(GrantType::AuthorizationCode);
    if !uses_codes && !requests(GrantType::DeviceCode) {
        return Err(invalid(
            "grant_types must contain authorization_code or urn:ietf:params:oauth:grant-type:device_code; other clients must be configured in the settings",
        ));
    }
    let response_types = &metadata.response_types;
    if uses_codes
        && !response_types.is_empty()
        && !response_types.iter().any(|name| name == RESPONSE_TYPE)
    {
        return Err(invalid(
            "response_types must contain code, the only supported response type",
        ));
    }
    let others = [GrantType::RefreshToken, GrantType::DeviceCode]
        .into_iter()
        .filter(|grant_type| requests(*grant_type));
    Ok(uses_codes
        .then_some(GrantType::AuthorizationCode)
        .into_iter()
        .chain(others)
        .collect())
}

/// Returns the credential for `private_key_jwt`. Keys at a `jwks_uri` are not fetched.
pub(super) fn parse_keys(metadata: &ClientMetadata) -> Result<Credential, ErrorResponse> {
    if metadata.jwks_uri.is_some() {
        return Err(invalid(
            "jwks_uri is not supported: send the public keys as a JWK set in jwks",
        ));
    }
    let jwks = metadata.jwks.as_ref().ok_or(invalid(
        "private_key_jwt requires the public keys as a JWK set in jwks",
    ))?;
    let keys = JwkSet::parse(jwks.to_string().as_bytes())
        .ok()
        .and_then(|keys| Credential::keys(&keys));
    keys.ok_or(invalid("jwks has no usable public key"))
}

/// Returns the error for invalid metadata (RFC 7591 section 3.2.2).
pub(super) const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClientMetadata, description)
}
