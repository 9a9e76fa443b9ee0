//! Reads responses: their media type, their whole body, and the errors that they report.

mod body;
mod media_type;

use http::{HeaderMap, StatusCode};
use portcullis_client::ResourceChallenge;
use portcullis_mcp::ErrorCode;

pub(crate) use self::{
    body::{BodyLimits, read_body},
    media_type::MediaType,
};
use crate::error::McpError;

/// The error of a response whose challenge requires more scopes than the token has.
pub(crate) fn insufficient_scope(status: StatusCode, headers: &HeaderMap) -> Option<McpError> {
    if status != StatusCode::FORBIDDEN {
        return None;
    }
    let challenge = ResourceChallenge::from_headers(headers);
    challenge
        .is_insufficient_scope()
        .then(|| McpError::InsufficientScope { needed: challenge.scopes().cloned().unwrap_or_default() })
}

/// Whether the server does not know the session and has not processed the request: 404 as the specification defines, or
/// 400 with the code that implementations use.
pub(crate) fn is_unknown_session(status: StatusCode, code: Option<i64>) -> bool {
    match status {
        StatusCode::NOT_FOUND => code != Some(ErrorCode::MethodNotFound.value()),
        StatusCode::BAD_REQUEST => code == Some(ErrorCode::ServerError.value()),
        _ => false,
    }
}
