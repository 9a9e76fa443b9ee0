//! Validates the metadata of a client that describes itself: in a registration (RFC 7591 section 2)
//! or in its metadata document.

use portcullis_metadata::{
    EscapedText, JwkSet,
    client::{ClientMetadata, ClientRegistrationRequest},
};

use crate::{
    client::{Credential, GrantType, RedirectUri, RedirectUriError, RegistrationRules},
    error::{ErrorCode, ErrorResponse},
};

/// The only supported response type.
pub(super) const RESPONSE_TYPE: &str = "code";
const MAX_REDIRECT_URIS: usize = 10;
const MAX_NAME_CHARS: usize = 100;
/// The limits of [`RegistrationRules::Lenient`].
const MAX_LENIENT_REDIRECT_URIS: usize = 16;
const MAX_LENIENT_NAME_CHARS: usize = 64;

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
pub(super) fn parse_name(
    metadata: &ClientMetadata,
    rules: RegistrationRules<'_>,
) -> Result<Option<Box<str>>, ErrorResponse> {
    let name = metadata.client_name.as_deref().unwrap_or_default();
    if rules.is_lenient() {
        return Ok(shorten_name(name));
    }
    let name = name.trim();
    if name.is_empty() {
        return Ok(None);
    }
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid(
            "client_name must have at most 100 characters and no control characters",
        ));
    }
    Ok(Some(name.into()))
}

/// Removes characters that could deceive the reader, and what exceeds the limit.
fn shorten_name(name: &str) -> Option<Box<str>> {
    let visible: String = name
        .chars()
        .filter(|character| !EscapedText::escapes(*character))
        .collect();
    let short: String = visible
        .trim()
        .chars()
        .take(MAX_LENIENT_NAME_CHARS)
        .collect();
    let short = short.trim_end();
    (!short.is_empty()).then(|| short.into())
}

/// Returns the redirect URIs. At least one is required, which must be usable.
pub(super) fn parse_redirect_uris(
    metadata: &ClientMetadata,
    rules: RegistrationRules<'_>,
) -> Result<Vec<RedirectUri>, ErrorResponse> {
    let reject = |description| ErrorResponse::new(ErrorCode::InvalidRedirectUri, description);
    let uris = &metadata.redirect_uris;
    let RegistrationRules::Lenient(policy) = rules else {
        if uris.is_empty() || uris.len() > MAX_REDIRECT_URIS {
            return Err(reject("redirect_uris must have 1 to 10 entries"));
        }
        let parsed: Result<_, RedirectUriError> =
            uris.iter().map(|uri| RedirectUri::parse(uri)).collect();
        return parsed.map_err(|error| reject(error.description()));
    };
    if uris.is_empty() || uris.len() > MAX_LENIENT_REDIRECT_URIS {
        return Err(reject("redirect_uris must have 1 to 16 entries"));
    }
    let mut parsed: Vec<RedirectUri> = Vec::with_capacity(uris.len());
    for uri in uris {
        let uri =
            RedirectUri::parse_registered(uri).map_err(|error| reject(error.description()))?;
        if !parsed.contains(&uri) {
            parsed.push(uri);
        }
    }
    if !parsed.iter().any(|uri| policy.is_usable(uri)) {
        return Err(reject(
            "none of the redirect URIs can be used with this server: one must be http on a loopback host, or https on a host that the operator of the server lists",
        ));
    }
    Ok(parsed)
}

/// Returns those of the requested grant types that a client may have without being configured.
pub(super) fn parse_grant_types(
    metadata: &ClientMetadata,
    rules: RegistrationRules<'_>,
) -> Result<Vec<GrantType>, ErrorResponse> {
    let requests = |grant_type: GrantType| {
        metadata
            .grant_types
            .iter()
            .any(|name| name == grant_type.as_str())
    };
    let uses_codes = metadata.grant_types.is_empty() || requests(GrantType::AuthorizationCode);
    if rules.is_lenient() {
        if !uses_codes {
            return Err(invalid(
                "grant_types must contain authorization_code, the only way to begin a session with this server",
            ));
        }
        check_response_types(metadata)?;
        return Ok(vec![GrantType::AuthorizationCode, GrantType::RefreshToken]);
    }
    if !uses_codes && !requests(GrantType::DeviceCode) {
        return Err(invalid(
            "grant_types must contain authorization_code or urn:ietf:params:oauth:grant-type:device_code; other clients must be configured in the settings",
        ));
    }
    if uses_codes {
        check_response_types(metadata)?;
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

fn check_response_types(metadata: &ClientMetadata) -> Result<(), ErrorResponse> {
    let response_types = &metadata.response_types;
    if response_types.is_empty() || response_types.iter().any(|name| name == RESPONSE_TYPE) {
        return Ok(());
    }
    Err(invalid(
        "response_types must contain code, the only supported response type",
    ))
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
