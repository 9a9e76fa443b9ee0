//! The responses of the endpoint itself. This is the only file that turns a rejection into a
//! status, headers and a body.

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
/// The retry time when the body budget is exhausted or a store is unavailable: both usually recover
/// within a second.
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
        response
            .extensions_mut()
            .insert(RejectionCode(self.reason.code()));
        response
    }

    /// Returns what the client gets: no more than it needs to fix the request.
    fn client_response(&self, challenges: &Challenges) -> Response<Bytes> {
        let id = self.id.as_deref();
        match &self.reason {
            Reason::NoGuard => text(StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
            Reason::Method { has_sessions } => {
                let allow = if *has_sessions {
                    ALL_METHODS
                } else {
                    POST_ONLY
                };
                with_header(
                    text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
                    ALLOW,
                    allow,
                )
            }
            Reason::Body(error) => body_error(*error),
            Reason::Session(error) => session_error(*error, id),
            Reason::StreamSession(error) => stream_session_error(*error, id),
            Reason::StreamVersion(_) => text(
                StatusCode::BAD_REQUEST,
                "Invalid or unsupported protocol version",
            ),
            Reason::ContentType => {
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                rpc(
                    status,
                    ErrorCode::InvalidRequest,
                    "Content-Type must be application/json",
                    id,
                )
            }
            Reason::Message(error) | Reason::Era(EraError::Message(error)) => {
                let code = error.rpc_code();
                rpc(StatusCode::BAD_REQUEST, code, standard_message(code), id)
            }
            Reason::Uri(_) => rpc(
                StatusCode::BAD_REQUEST,
                ErrorCode::InvalidParams,
                standard_message(ErrorCode::InvalidParams),
                id,
            ),
            Reason::Era(error) => rpc_with_data(
                error.status(),
                error.rpc_code(),
                &error.to_string(),
                id,
                error.data().as_ref(),
            ),
            Reason::Rule(violation) => rule_violation(violation, challenges, id),
            Reason::NoOwner => rpc(
                StatusCode::FORBIDDEN,
                ErrorCode::InvalidRequest,
                "This token cannot open a session",
                id,
            ),
            Reason::SessionLimit(_) => retry_later(SESSION_RETRY, id),
            Reason::IncompleteResponse => {
                let message = "The server's answer broke off; try again";
                let response = rpc(
                    StatusCode::BAD_GATEWAY,
                    ErrorCode::InternalError,
                    message,
                    id,
                );
                with_header(response, RETRY_AFTER, UPSTREAM_RETRY)
            }
            Reason::LateResponse => rpc(
                StatusCode::GATEWAY_TIMEOUT,
                ErrorCode::InternalError,
                "The server did not answer in time",
                id,
            ),
            Reason::EndNotRecorded(_) => retry_later(SOON_RETRY, None),
        }
    }
}

fn body_error(error: BodyError) -> Response<Bytes> {
    match error {
        BodyError::Incomplete => rpc(
            StatusCode::BAD_REQUEST,
            ErrorCode::InvalidRequest,
            "Incomplete body",
            None,
        ),
        BodyError::TooLarge => rpc(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::InvalidRequest,
            "The message is too large",
            None,
        ),
        BodyError::BudgetExhausted => retry_later(SOON_RETRY, None),
        BodyError::PrincipalBudget => {
            let message = "Too many large messages at once; try again";
            let response = rpc(
                StatusCode::TOO_MANY_REQUESTS,
                ErrorCode::InternalError,
                message,
                None,
            );
            with_header(response, RETRY_AFTER, SOON_RETRY)
        }
        BodyError::TooSlow => rpc(
            StatusCode::REQUEST_TIMEOUT,
            ErrorCode::InvalidRequest,
            "The message arrived too slowly",
            None,
        ),
    }
}

/// Returns the response to a message without a usable session. It does not say why, unless the
/// client can try again, or its own session has ended and the resource says so.
fn session_error(error: SessionError, id: Option<&RawValue>) -> Response<Bytes> {
    match error {
        SessionError::NotResolved(ResolveError::NotReady) => retry_later(SOON_RETRY, id),
        SessionError::NotResolved(ResolveError::Capacity(_)) => retry_later(SESSION_RETRY, id),
        SessionError::Ended => rpc(
            StatusCode::NOT_FOUND,
            ErrorCode::ServerError,
            "Session not found",
            None,
        ),
        SessionError::Missing
        | SessionError::Repeated
        | SessionError::NoOwner
        | SessionError::NotResolved(_) => rpc(
            StatusCode::BAD_REQUEST,
            ErrorCode::ServerError,
            "Bad Request: No valid session ID provided",
            None,
        ),
    }
}

/// Returns the response to a GET or DELETE without a usable session.
fn stream_session_error(error: SessionError, id: Option<&RawValue>) -> Response<Bytes> {
    match error {
        SessionError::NotResolved(ResolveError::NotReady | ResolveError::Capacity(_)) => {
            session_error(error, id)
        }
        SessionError::Ended => text(StatusCode::NOT_FOUND, "Session not found"),
        SessionError::Missing
        | SessionError::Repeated
        | SessionError::NoOwner
        | SessionError::NotResolved(_) => {
            text(StatusCode::BAD_REQUEST, "Invalid or missing session ID")
        }
    }
}

/// Returns the response to a request that a rule denies. Only missing scopes get a challenge: other
/// scopes would not help otherwise.
fn rule_violation(
    violation: &RuleViolation,
    challenges: &Challenges,
    id: Option<&RawValue>,
) -> Response<Bytes> {
    match violation {
        RuleViolation::Claims(_) => {
            const BODY: &str = r#"{"error":"access_denied","error_description":"The access token does not allow this request"}"#;
            new_response(
                StatusCode::FORBIDDEN,
                JSON,
                Bytes::from_static(BODY.as_bytes()),
            )
        }
        RuleViolation::Scopes(MissingScopes { needed, granted }) => {
            const BODY: &str = r#"{"error":"insufficient_scope","error_description":"The access token lacks scopes that this request needs"}"#;
            let response = new_response(
                StatusCode::FORBIDDEN,
                JSON,
                Bytes::from_static(BODY.as_bytes()),
            );
            with_header(
                response,
                WWW_AUTHENTICATE,
                challenges.insufficient_scope(needed, granted),
            )
        }
        RuleViolation::RateLimit(exceeded) => {
            let seconds = exceeded.retry_after_secs();
            let message = format!("Too many requests; try again in {seconds} s");
            let response = rpc(
                StatusCode::TOO_MANY_REQUESTS,
                ErrorCode::InternalError,
                &message,
                id,
            );
            with_header(response, RETRY_AFTER, HeaderValue::from(seconds))
        }
    }
}

/// Returns the response to a DELETE whose session has ended although the inner service did not
/// confirm it.
pub(crate) fn session_ended<B>() -> Response<EndpointBody<B>> {
    let mut response = Response::new(EndpointBody::own(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Returns the message of the JSON-RPC specification for the error code of a malformed message.
/// Only logs are more precise.
fn standard_message(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ParseError => "Parse error",
        ErrorCode::InvalidParams => "Invalid params",
        _ => "Invalid Request",
    }
}

/// Returns 503 with the time after which the client may try again.
fn retry_later(after: HeaderValue, id: Option<&RawValue>) -> Response<Bytes> {
    let response = rpc(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::InternalError,
        "Try again later",
        id,
    );
    with_header(response, RETRY_AFTER, after)
}

/// Returns a JSON-RPC error. Without an id, the id is `null`.
fn rpc(
    status: StatusCode,
    code: ErrorCode,
    message: &str,
    id: Option<&RawValue>,
) -> Response<Bytes> {
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

fn with_header(
    mut response: Response<Bytes>,
    name: HeaderName,
    value: HeaderValue,
) -> Response<Bytes> {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use portcullis_session::ReservationError;

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

    /// E5: the response to a request without a usable session has the same status for all methods.
    /// That to GET and DELETE is text, unless the client can try again.
    #[test]
    fn session_errors_have_their_status() {
        for (error, status, retry_after) in [
            (SessionError::Missing, 400, None),
            (SessionError::Repeated, 400, None),
            (SessionError::NoOwner, 400, None),
            (SessionError::NotResolved(ResolveError::Unknown), 400, None),
            (SessionError::NotResolved(ResolveError::Ended), 400, None),
            (
                SessionError::NotResolved(ResolveError::NotReady),
                503,
                Some("1"),
            ),
            (
                SessionError::NotResolved(ResolveError::Capacity(ReservationError::TotalLimit)),
                503,
                Some("30"),
            ),
            (SessionError::Ended, 404, None),
        ] {
            let stream_type = if retry_after.is_some() { JSON } else { TEXT };
            for (response, content_type) in [
                (session_error(error, None), JSON),
                (stream_session_error(error, None), stream_type),
            ] {
                assert_eq!(response.status(), status, "{error:?}");
                assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{error:?}");
                let value = response
                    .headers()
                    .get(RETRY_AFTER)
                    .map(|value| value.to_str().unwrap());
                assert_eq!(value, retry_after, "{error:?}");
            }
        }
    }

    #[test]
    fn body_errors_have_their_status() {
        for (error, status, retry_after) in [
            (BodyError::Incomplete, 400, None),
            (BodyError::TooLarge, 413, None),
            (BodyError::BudgetExhausted, 503, Some(SOON_RETRY)),
            (BodyError::PrincipalBudget, 429, Some(SOON_RETRY)),
            (BodyError::TooSlow, 408, None),
        ] {
            let response = body_error(error);
            assert_eq!(response.status(), status, "{error:?}");
            assert_eq!(
                response.headers().get(RETRY_AFTER),
                retry_after.as_ref(),
                "{error:?}"
            );
        }
    }
}
