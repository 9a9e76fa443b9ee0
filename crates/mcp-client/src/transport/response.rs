//! Reads responses: their media type, their whole body, and the errors that they report.

mod body;
mod media_type;

use http::{HeaderMap, StatusCode};
use portcullis_client::ResourceChallenge;
use portcullis_discovery::OpenResponse;
use portcullis_mcp::ErrorCode;

pub use self::{
    body::{BodyLimits, read_body},
    media_type::MediaType,
};
use crate::error::McpError;

/// The maximum size of an error response that is read.
pub const MAX_ERROR_SIZE: usize = 1024 * 1024;

/// Whether a response is successful and its body is an event stream.
pub fn is_event_stream(response: &OpenResponse) -> bool {
    response.status.is_success() && MediaType::of(&response.headers) == MediaType::EventStream
}

/// The error of a response whose challenge requires more scopes than the token has.
pub fn insufficient_scope(status: StatusCode, headers: &HeaderMap) -> Option<McpError> {
    if status != StatusCode::FORBIDDEN {
        return None;
    }
    let challenge = ResourceChallenge::from_headers(headers);
    challenge
        .is_insufficient_scope()
        .then(|| McpError::InsufficientScope {
            needed: challenge.scopes().cloned().unwrap_or_default(),
        })
}

/// Whether the same request can succeed later: the server has failed or is busy.
pub fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Whether the server does not know the session and has not processed the request: 404 as the
/// specification defines, or 400 with the code that implementations use.
pub fn is_unknown_session(status: StatusCode, code: Option<i64>) -> bool {
    match status {
        StatusCode::NOT_FOUND => code != Some(ErrorCode::MethodNotFound.value()),
        StatusCode::BAD_REQUEST => code == Some(ErrorCode::ServerError.value()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only these rejections let a client open another session and send its request again: any
    /// other status can come from a server that has processed the request.
    #[test]
    fn an_unknown_session_is_recognized_by_status_and_code() {
        for (status, code, expected) in [
            (404, None, true),
            (404, Some(ErrorCode::ServerError), true),
            (404, Some(ErrorCode::MethodNotFound), false),
            (400, Some(ErrorCode::ServerError), true),
            (400, Some(ErrorCode::InvalidRequest), false),
            (400, None, false),
            (500, Some(ErrorCode::ServerError), false),
            (200, None, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                is_unknown_session(status, code.map(ErrorCode::value)),
                expected,
                "{status} {code:?}"
            );
        }
    }
}
