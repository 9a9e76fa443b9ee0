//! Who may register a client, and the bearer token of a registration or management request.

use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_authorization_server::{ErrorCode, ErrorResponse};
use portcullis_metadata::Secret;

use crate::settings::Registration;

/// Checks that the sender may register a client: anyone, or with the initial access token (RFC 7591
/// section 3).
pub(super) fn check_initial_token(
    registration: &Registration,
    headers: &HeaderMap,
) -> Result<(), ErrorResponse> {
    match registration {
        Registration::Open => Ok(()),
        Registration::Closed => Err(ErrorResponse::new(
            ErrorCode::AccessDenied,
            "registration is disabled on this server",
        )),
        Registration::WithToken(expected) => {
            let code = match bearer_token(headers) {
                Some(token) if token == *expected => return Ok(()),
                Some(_) => ErrorCode::InvalidToken,
                None => ErrorCode::MissingToken,
            };
            let description =
                "registration needs the initial access token of this server as a bearer token";
            Err(ErrorResponse::new(code, description))
        }
    }
}

/// Returns the bearer token of a request (RFC 6750 section 2.1). `None` also for several
/// `Authorization` fields.
pub(in crate::clients) fn bearer_token(headers: &HeaderMap) -> Option<Secret> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .filter(|_| values.next().is_none())?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| Secret::new(token))
}
