//! The resource of a request (RFC 8707), which becomes the audience of its tokens.

use portcullis_metadata::ResourceUri;

use crate::{
    error::{ErrorCode, ErrorResponse},
    params::Params,
};

/// Returns the parameter `resource`, if present. RFC 8707 allows several; one token for several
/// resources is not supported.
///
/// # Errors
/// Fails with `invalid_target` when there are several.
pub fn single_resource(params: &Params) -> Result<Option<&str>, ErrorResponse> {
    params
        .get("resource")
        .map_err(|_| invalid("only one resource is supported"))
}

/// Returns the requested resource, or the default one (RFC 8707 section 2). Does not check whether
/// the server knows the resource.
///
/// # Errors
/// Fails with `invalid_target` when it is malformed, repeated, or missing without a default.
pub fn parse_resource(params: &Params, default: Option<&str>) -> Result<Box<str>, ErrorResponse> {
    match (single_resource(params)?, default) {
        (Some(resource), _) => match ResourceUri::parse(resource) {
            Ok(resource) => Ok(resource.as_str().into()),
            Err(_) => Err(invalid(
                "resource must be an absolute http or https URL without fragment and user information",
            )),
        },
        (None, Some(default)) => Ok(default.into()),
        (None, None) => Err(invalid(
            "resource is missing: it is the audience of the token",
        )),
    }
}

/// Checks the resource of a token request against that of the grant. It may be absent, and must
/// otherwise be the same string (RFC 8707 section 2.2).
///
/// # Errors
/// Fails with `invalid_target` when it is another one.
pub fn check_resource(params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse> {
    match params.get("resource") {
        Ok(None) => Ok(()),
        Ok(resource) if resource == granted => Ok(()),
        _ => Err(invalid("resource is not that of the authorization request")),
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidTarget, description)
}
