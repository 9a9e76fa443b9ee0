//! What a client is answered that is refused.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_guard::{Challenges, RejectionCode};
use portcullis_mcp::{EnvelopeError, EraError, ErrorCode, error_body};
use portcullis_session::ReservationError;
use serde_json::{Value, value::RawValue};

use crate::{
    EndpointBody,
    aliases::UriError,
    rules::{Missing, NotAllowed},
    session::NoSession,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const ALL_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const POST_ONLY: HeaderValue = HeaderValue::from_static("POST");
/// Bodies come and go within a second.
const BUDGET_RETRY: HeaderValue = HeaderValue::from_static("1");
/// Sessions end more slowly.
const STORE_RETRY: HeaderValue = HeaderValue::from_static("30");

/// Every way in which the endpoint refuses a request.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No guard stands in front: nobody judged who calls.
    NoCaller,
    /// The method is not served; GET and DELETE are, where a revision with sessions is.
    Method { post_only: bool },
    /// The body could not be read to its end.
    BodyBroken,
    /// The body is larger than it may be.
    TooLarge,
    /// All bodies together are larger than they may be.
    BudgetSpent,
    /// A message that needs a session and has none that it may use.
    NoSession(NoSession),
    /// GET or DELETE without a session that it may use.
    NoStream(NoSession),
    /// GET or DELETE with a version header that no session can have.
    StreamVersion(EraError),
    /// The body is said to be something else than JSON.
    ContentType,
    /// The message cannot be judged.
    Message(EnvelopeError),
    /// The rules for names cannot be applied to a URI in the message.
    Uri(UriError),
    /// The message follows the rules of no revision that is served.
    Era(EraError),
    /// The token is good, and does not allow what is asked for.
    NotAllowed(NotAllowed),
    /// The token is good, and has nobody in it who could own a session.
    NoOwner,
    /// There is no room for another session.
    SessionLimit(ReservationError),
    /// The inner service's answer to `initialize` broke off before it told the negotiated version.
    AnswerBroken,
}

/// A refusal, and the id of the message that is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    pub(crate) id: Option<Box<RawValue>>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, id: None }
    }
}

impl Refusal {
    /// The stable reason code: for the log, never for the client.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoCaller => "endpoint.no_guard",
            Self::Method { .. } => "endpoint.method",
            Self::BodyBroken => "body.broken",
            Self::TooLarge => "body.too_large",
            Self::BudgetSpent => "body.budget_spent",
            Self::NoSession(reason) | Self::NoStream(reason) => reason.code(),
            Self::ContentType => "body.content_type",
            Self::Message(error) => error.code(),
            Self::Uri(error) => error.code(),
            Self::Era(error) | Self::StreamVersion(error) => error.code(),
            Self::NotAllowed(NotAllowed::Claims(unmet)) => unmet.code(),
            Self::NotAllowed(NotAllowed::Scopes(_)) => "scope.insufficient",
            Self::NotAllowed(NotAllowed::Limited(_)) => "limit.tool",
            Self::NoOwner => "session.no_owner",
            Self::SessionLimit(reason) => reason.code(),
            Self::AnswerBroken => "upstream.body_broken",
        }
    }
}

impl Refused {
    /// The answer that the client gets, with the reason for the guard to report.
    pub(crate) fn response<B>(&self, challenges: &Challenges) -> Response<EndpointBody<B>> {
        let mut response = self.answer(challenges).map(EndpointBody::own);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response.extensions_mut().insert(RejectionCode(self.refusal.code()));
        response
    }

    fn answer(&self, challenges: &Challenges) -> Response<Bytes> {
        let id = self.id.as_deref();
        match &self.refusal {
            Refusal::NoCaller => text(StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
            Refusal::Method { post_only } => {
                let allow = if *post_only { POST_ONLY } else { ALL_METHODS };
                with(text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"), ALLOW, allow)
            }
            Refusal::BodyBroken => rpc(StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest, "Incomplete body", None),
            Refusal::TooLarge => {
                rpc(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidRequest, "The message is too large", None)
            }
            Refusal::BudgetSpent => {
                let busy = rpc(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, "Try again later", None);
                with(busy, RETRY_AFTER, BUDGET_RETRY)
            }
            Refusal::NoSession(NoSession::Gone) => {
                rpc(StatusCode::NOT_FOUND, ErrorCode::ServerError, "Session not found", None)
            }
            Refusal::NoStream(NoSession::Gone) => text(StatusCode::NOT_FOUND, "Session not found"),
            Refusal::NoSession(_) => {
                rpc(StatusCode::BAD_REQUEST, ErrorCode::ServerError, "Bad Request: No valid session ID provided", None)
            }
            Refusal::NoStream(_) => text(StatusCode::BAD_REQUEST, "Invalid or missing session ID"),
            Refusal::StreamVersion(_) => text(StatusCode::BAD_REQUEST, "Invalid or unsupported protocol version"),
            Refusal::ContentType => {
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                rpc(status, ErrorCode::InvalidRequest, "Content-Type must be application/json", id)
            }
            Refusal::Message(error) => rpc(StatusCode::BAD_REQUEST, error.rpc_code(), generic(error.rpc_code()), id),
            Refusal::Uri(_) => {
                rpc(StatusCode::BAD_REQUEST, ErrorCode::InvalidParams, generic(ErrorCode::InvalidParams), id)
            }
            Refusal::Era(EraError::Message(error)) => {
                rpc(StatusCode::BAD_REQUEST, error.rpc_code(), generic(error.rpc_code()), id)
            }
            Refusal::Era(error) => {
                json_rpc(error.status(), error.rpc_code(), &error.to_string(), id, error.data().as_ref())
            }
            // Without a challenge: no other scopes would help.
            Refusal::NotAllowed(NotAllowed::Claims(_)) => {
                const BODY: &str =
                    r#"{"error":"access_denied","error_description":"The access token does not allow this request"}"#;
                plain(StatusCode::FORBIDDEN, JSON, Bytes::from_static(BODY.as_bytes()))
            }
            Refusal::NotAllowed(NotAllowed::Scopes(Missing { needed, granted })) => {
                const BODY: &str = r#"{"error":"insufficient_scope","error_description":"The access token lacks scopes that this request needs"}"#;
                let response = plain(StatusCode::FORBIDDEN, JSON, Bytes::from_static(BODY.as_bytes()));
                with(response, WWW_AUTHENTICATE, challenges.insufficient_scope(needed, granted))
            }
            Refusal::NotAllowed(NotAllowed::Limited(limited)) => {
                let busy = rpc(StatusCode::TOO_MANY_REQUESTS, ErrorCode::InternalError, "Try again later", id);
                with(busy, RETRY_AFTER, HeaderValue::from(limited.retry_after_secs()))
            }
            Refusal::NoOwner => {
                rpc(StatusCode::FORBIDDEN, ErrorCode::InvalidRequest, "This token cannot open a session", id)
            }
            Refusal::SessionLimit(_) => {
                let full = rpc(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, "Try again later", id);
                with(full, RETRY_AFTER, STORE_RETRY)
            }
            Refusal::AnswerBroken => {
                rpc(StatusCode::BAD_GATEWAY, ErrorCode::InternalError, "The server's answer broke off", id)
            }
        }
    }
}

/// A session has ended at its client's wish, whatever the inner service had to say to that.
pub(crate) fn ended<B>() -> Response<EndpointBody<B>> {
    let mut response = Response::new(EndpointBody::own(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// What JSON-RPC calls these errors; anything more precise is for the log.
fn generic(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ParseError => "Parse error",
        ErrorCode::InvalidParams => "Invalid params",
        _ => "Invalid Request",
    }
}

fn rpc(status: StatusCode, code: ErrorCode, message: &str, id: Option<&RawValue>) -> Response<Bytes> {
    json_rpc(status, code, message, id, None)
}

fn json_rpc(
    status: StatusCode,
    code: ErrorCode,
    message: &str,
    id: Option<&RawValue>,
    data: Option<&Value>,
) -> Response<Bytes> {
    plain(status, JSON, error_body(code, message, id, data).into())
}

fn text(status: StatusCode, message: &'static str) -> Response<Bytes> {
    plain(status, TEXT, Bytes::from_static(message.as_bytes()))
}

fn plain(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = with(Response::new(body), CONTENT_TYPE, content_type);
    *response.status_mut() = status;
    response
}

fn with(mut response: Response<Bytes>, name: http::HeaderName, value: HeaderValue) -> Response<Bytes> {
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
            assert_eq!(generic(code), message);
        }
    }
}
