//! The responses of the endpoint itself. This is the only file that turns a rejection into a status, headers and a body.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_guard::{Challenges, RejectionCode};
use portcullis_mcp::{EraError, ErrorCode, error_body};
use portcullis_session::ResolveError;
use serde_json::{Value, value::RawValue};

use super::{
    body::EndpointBody,
    rejection::{Reason, Rejection},
};
use crate::{
    message::BodyError,
    rules::{MissingScopes, RuleViolation},
    session::SessionError,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const ALL_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const POST_ONLY: HeaderValue = HeaderValue::from_static("POST");
/// The retry time when the body budget is exhausted or a store is unavailable: both usually recover within a second.
const SOON_RETRY: HeaderValue = HeaderValue::from_static("1");
/// An upstream that fails is often starting again.
const UPSTREAM_RETRY: HeaderValue = HeaderValue::from_static("5");
/// The retry time at the limit of sessions, which end more slowly.
const SESSION_RETRY: HeaderValue = HeaderValue::from_static("30");

impl Rejection {
    /// Returns the response to the client, with the reason code for the guard.
    pub(crate) fn response<B>(&self, challenges: &Challenges) -> Response<EndpointBody<B>> {
        let mut response = self.client_response(challenges).map(EndpointBody::own);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response.extensions_mut().insert(RejectionCode(self.reason.code()));
        response
    }

    fn client_response(&self, challenges: &Challenges) -> Response<Bytes> {
        let id = self.id.as_deref();
        match &self.reason {
            Reason::NoGuard => text(StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
            Reason::Method { post_only } => {
                let allow = if *post_only { POST_ONLY } else { ALL_METHODS };
                with_header(text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"), ALLOW, allow)
            }
            Reason::Body(BodyError::Incomplete) => {
                rpc(StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest, "Incomplete body", None)
            }
            Reason::Body(BodyError::TooLarge) => {
                rpc(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidRequest, "The message is too large", None)
            }
            Reason::Body(BodyError::BudgetExhausted) => retry_later(SOON_RETRY, None),
            Reason::Session(SessionError::NotResolved(
                error @ (ResolveError::NotReady | ResolveError::Capacity(_)),
            ))
            | Reason::StreamSession(SessionError::NotResolved(
                error @ (ResolveError::NotReady | ResolveError::Capacity(_)),
            )) => {
                let after = if matches!(error, ResolveError::NotReady) { SOON_RETRY } else { SESSION_RETRY };
                retry_later(after, id)
            }
            Reason::Session(SessionError::Ended) => {
                rpc(StatusCode::NOT_FOUND, ErrorCode::ServerError, "Session not found", None)
            }
            Reason::StreamSession(SessionError::Ended) => text(StatusCode::NOT_FOUND, "Session not found"),
            Reason::Session(_) => {
                rpc(StatusCode::BAD_REQUEST, ErrorCode::ServerError, "Bad Request: No valid session ID provided", None)
            }
            Reason::StreamSession(_) => text(StatusCode::BAD_REQUEST, "Invalid or missing session ID"),
            Reason::StreamVersion(_) => text(StatusCode::BAD_REQUEST, "Invalid or unsupported protocol version"),
            Reason::ContentType => {
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                rpc(status, ErrorCode::InvalidRequest, "Content-Type must be application/json", id)
            }
            Reason::Message(error) | Reason::Era(EraError::Message(error)) => {
                rpc(StatusCode::BAD_REQUEST, error.rpc_code(), standard_message(error.rpc_code()), id)
            }
            Reason::Uri(_) => {
                rpc(StatusCode::BAD_REQUEST, ErrorCode::InvalidParams, standard_message(ErrorCode::InvalidParams), id)
            }
            Reason::Era(error) => {
                rpc_with_data(error.status(), error.rpc_code(), &error.to_string(), id, error.data().as_ref())
            }
            // No challenge: other scopes would not help.
            Reason::Rule(RuleViolation::Claims(_)) => {
                const BODY: &str =
                    r#"{"error":"access_denied","error_description":"The access token does not allow this request"}"#;
                new_response(StatusCode::FORBIDDEN, JSON, Bytes::from_static(BODY.as_bytes()))
            }
            Reason::Rule(RuleViolation::Scopes(MissingScopes { needed, granted })) => {
                const BODY: &str = r#"{"error":"insufficient_scope","error_description":"The access token lacks scopes that this request needs"}"#;
                let response = new_response(StatusCode::FORBIDDEN, JSON, Bytes::from_static(BODY.as_bytes()));
                with_header(response, WWW_AUTHENTICATE, challenges.insufficient_scope(needed, granted))
            }
            Reason::Rule(RuleViolation::RateLimit(exceeded)) => {
                let seconds = exceeded.retry_after_secs();
                let message = format!("Too many requests; try again in {seconds} s");
                let response = rpc(StatusCode::TOO_MANY_REQUESTS, ErrorCode::InternalError, &message, id);
                with_header(response, RETRY_AFTER, HeaderValue::from(seconds))
            }
            Reason::NoOwner => {
                rpc(StatusCode::FORBIDDEN, ErrorCode::InvalidRequest, "This token cannot open a session", id)
            }
            Reason::SessionLimit(_) => retry_later(SESSION_RETRY, id),
            Reason::IncompleteResponse => {
                let message = "The server's answer broke off; try again";
                let response = rpc(StatusCode::BAD_GATEWAY, ErrorCode::InternalError, message, id);
                with_header(response, RETRY_AFTER, UPSTREAM_RETRY)
            }
            Reason::LateResponse => {
                rpc(StatusCode::GATEWAY_TIMEOUT, ErrorCode::InternalError, "The server did not answer in time", id)
            }
            Reason::EndNotRecorded(_) => retry_later(SOON_RETRY, None),
        }
    }
}

/// Returns the response to a DELETE whose session has ended although the inner service did not confirm it.
pub(crate) fn session_ended<B>() -> Response<EndpointBody<B>> {
    let mut response = Response::new(EndpointBody::own(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Returns the message of the JSON-RPC specification. Only logs are more precise.
fn standard_message(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ParseError => "Parse error",
        ErrorCode::InvalidParams => "Invalid params",
        _ => "Invalid Request",
    }
}

fn retry_later(after: HeaderValue, id: Option<&RawValue>) -> Response<Bytes> {
    let response = rpc(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, "Try again later", id);
    with_header(response, RETRY_AFTER, after)
}

fn rpc(status: StatusCode, code: ErrorCode, message: &str, id: Option<&RawValue>) -> Response<Bytes> {
    rpc_with_data(status, code, message, id, None)
}

fn rpc_with_data(
    status: StatusCode,
    code: ErrorCode,
    message: &str,
    id: Option<&RawValue>,
    data: Option<&Value>,
) -> Response<Bytes> {
    new_response(status, JSON, error_body(code, message, id, data).into())
}

fn text(status: StatusCode, message: &'static str) -> Response<Bytes> {
    new_response(status, TEXT, Bytes::from_static(message.as_bytes()))
}

fn new_response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = with_header(Response::new(body), CONTENT_TYPE, content_type);
    *response.status_mut() = status;
    response
}

fn with_header(mut response: Response<Bytes>, name: HeaderName, value: HeaderValue) -> Response<Bytes> {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of the JSON-RPC 2.0 specification, section 5.1.
    #[test]
    fn errors_have_the_messages_of_the_specification() {
        for (code, message) in [
            (ErrorCode::ParseError, "Parse error"),
            (ErrorCode::InvalidParams, "Invalid params"),
            (ErrorCode::InvalidRequest, "Invalid Request"),
        ] {
            assert_eq!(standard_message(code), message);
        }
    }
}
