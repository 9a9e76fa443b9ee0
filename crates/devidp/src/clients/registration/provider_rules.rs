//! How the registration endpoints of some providers reject requests.

use http::StatusCode;
use portcullis_authorization_server::{ErrorCode, ErrorResponse, scopes::OFFLINE_ACCESS};
use portcullis_metadata::{Scopes, client::ClientMetadata};
use serde_json::json;

use crate::server::respond::{Reply, json_reply};

/// Returns the response of Okta, whose endpoint needs a token of its API.
pub(super) fn missing_api_token() -> Reply {
    let body = json!({
        "errorCode": "E0000011", "errorSummary": "Invalid token provided", "errorLink": "E0000011", "errorCauses": [],
    });
    json_reply(StatusCode::UNAUTHORIZED, body.to_string().into_bytes())
}

/// Returns the response of Keycloak to a request with unknown members. It is not an OAuth error.
pub(super) fn reject_unknown_members(metadata: &ClientMetadata) -> Option<Reply> {
    if metadata.extra.is_empty() {
        return None;
    }
    let body = json!({ "error": "Invalid json representation for OIDCClientRepresentation. Unrecognized field" });
    Some(json_reply(
        StatusCode::BAD_REQUEST,
        body.to_string().into_bytes(),
    ))
}

/// Rejects a request for scopes that the server does not have, as Keycloak does.
pub(super) fn check_scopes(
    supported: &Scopes,
    metadata: &ClientMetadata,
) -> Result<(), ErrorResponse> {
    let is_known =
        |scope: &str| scope.is_empty() || scope == OFFLINE_ACCESS || supported.contains(scope);
    let mut requested = metadata.scope.iter().flat_map(|scope| scope.split(' '));
    if requested.all(is_known) {
        return Ok(());
    }
    let description = "Policy 'Allowed Client Scopes' rejected request to client-registration service. Details: Not permitted to use specified clientScope";
    Err(ErrorResponse::new(
        ErrorCode::InsufficientScope,
        description,
    ))
}
