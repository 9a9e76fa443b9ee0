//! [`ErrorResponse`]: a response without a success status.

use std::borrow::Cow;

use http::StatusCode;
use portcullis_discovery::{OpenResponse, ResponseExcerpt, SentSecrets};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::endpoint::Endpoint;
use portcullis_mcp_client::{
    McpError, RetryAfter,
    transport::{MediaType, insufficient_scope, is_unknown_session, suggests_http_sse},
};

/// A response without a success status, read and interpreted.
pub(crate) struct ErrorResponse {
    status: StatusCode,
    rpc_error: Option<RpcErrorBody>,
    mcp_error: McpError,
}

/// The JSON-RPC error of a response.
pub(crate) struct RpcErrorBody {
    pub(crate) code: i64,
    /// The `error` member. It is unchanged, unless its strings repeat what was sent.
    pub(crate) raw: Box<RawValue>,
}

impl ErrorResponse {
    /// Reads a response. A body that cannot be read counts as empty, because the status is an error
    /// already.
    pub(crate) async fn read(endpoint: &Endpoint, response: OpenResponse) -> Self {
        let status = response.status;
        let insufficient_scope = insufficient_scope(status, &response.headers);
        if MediaType::of(&response.headers) != MediaType::Json {
            let mcp_error = match insufficient_scope {
                Some(error) => error,
                None => McpError::status(response).await,
            };
            return Self {
                status,
                rpc_error: None,
                mcp_error,
            };
        }
        let OpenResponse {
            headers,
            body,
            sent,
            ..
        } = response;
        let body = endpoint.read_error(body).await.unwrap_or_default();
        let mcp_error = insufficient_scope.unwrap_or_else(|| McpError::Status {
            status,
            response: Box::new(ResponseExcerpt::new(&headers, &body, &sent)),
            retry_after: RetryAfter::of(&headers),
        });
        Self {
            status,
            rpc_error: RpcErrorBody::parse(&body).and_then(|error| error.redacted(&sent)),
            mcp_error,
        }
    }

    /// Its JSON-RPC error, if it has one.
    pub(crate) fn rpc_error(&self) -> Option<&RpcErrorBody> {
        self.rpc_error.as_ref()
    }

    /// Whether the server does not know the session.
    pub(crate) fn is_unknown_session(&self) -> bool {
        is_unknown_session(self.status, self.rpc_code())
    }

    /// Whether the server uses HTTP with SSE, as far as its rejection of a POST shows that.
    pub(crate) fn suggests_http_sse(&self) -> bool {
        suggests_http_sse(self.status, self.rpc_code())
    }

    /// The error that describes it: the missing scopes, or the status with an excerpt of the body.
    pub(crate) fn into_error(self) -> McpError {
        self.mcp_error
    }

    fn rpc_code(&self) -> Option<i64> {
        self.rpc_error.as_ref().map(|error| error.code)
    }
}

impl RpcErrorBody {
    /// Parses the body of a response. `None` if it has no JSON-RPC error with a code.
    fn parse(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            error: Box<RawValue>,
        }
        #[derive(Deserialize)]
        struct Error {
            code: i64,
        }
        let raw = serde_json::from_slice::<Body>(body).ok()?.error;
        let Error { code } = serde_json::from_str(raw.get()).ok()?;
        Some(Self { code, raw })
    }

    /// The error without what was sent.
    fn redacted(self, sent: &SentSecrets) -> Option<Self> {
        if matches!(sent.redact(self.raw.get()), Cow::Borrowed(_)) {
            return Some(self);
        }
        // A text that is not a JSON value, such as one with 1e400, is not repeated.
        let redacted = serde_json::from_str::<Value>(self.raw.get())
            .ok()
            .and_then(|mut error| {
                redact_strings(&mut error, sent);
                serde_json::value::to_raw_value(&error).ok()
            });
        let without_message =
            || serde_json::value::to_raw_value(&json!({ "code": self.code, "message": "" })).ok();
        Some(Self {
            code: self.code,
            raw: redacted.or_else(without_message)?,
        })
    }
}

/// Redacts the strings of a value at any depth. The names of members are not changed.
fn redact_strings(value: &mut Value, sent: &SentSecrets) {
    match value {
        Value::String(text) => *text = sent.redact(text).into_owned(),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| redact_strings(value, sent)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|value| redact_strings(value, sent)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_member_is_kept_unchanged() {
        let error =
            RpcErrorBody::parse(br#"{"id":1,"error":{"code": -32001,"more":[1.0]}}"#).unwrap();
        assert_eq!(error.code, -32001);
        assert_eq!(error.raw.get(), r#"{"code": -32001,"more":[1.0]}"#);
    }

    #[test]
    fn a_body_without_a_code_is_no_json_rpc_error() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"error":"text"}"#,
            r#"{"error":{}}"#,
            r#"{"error":{"code":"1"}}"#,
        ] {
            assert!(RpcErrorBody::parse(body.as_bytes()).is_none(), "{body}");
        }
    }
}
