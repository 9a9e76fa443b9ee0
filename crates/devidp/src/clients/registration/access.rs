//! Who may register a client.

use http::HeaderMap;
use portcullis_authorization_server::{ErrorCode, ErrorResponse};

use crate::{authentication::bearer::bearer_token, settings::Registration};

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
