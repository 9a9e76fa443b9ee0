//! [`ErrorResponse`]: a response without a success status.

use http::StatusCode;
use portcullis_discovery::{OpenResponse, ResponseExcerpt};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    bridge::endpoint::Endpoint,
    error::McpError,
    http_sse::suggests_http_sse,
    response::{MediaType, RetryAfter, insufficient_scope, is_unknown_session},
};

/// A response without a success status, read and interpreted.
pub(crate) struct ErrorResponse {
    status: StatusCode,
    rpc_error: Option<RpcErrorBody>,
    mcp_error: McpError,
}

/// The JSON-RPC error of a response.
pub(crate) struct RpcErrorBody {
    /// The error code.
    pub(crate) code: i64,
    /// The `error` member, unchanged.
    pub(crate) raw: Box<RawValue>,
}

impl ErrorResponse {
    /// Reads a response. A body that cannot be read counts as empty, because the status is an error already.
    pub(crate) async fn read(endpoint: &Endpoint, response: OpenResponse) -> Self {
        let status = response.status;
        let insufficient_scope = insufficient_scope(status, &response.headers);
        if MediaType::of(&response.headers) != MediaType::Json {
            let mcp_error = match insufficient_scope {
                Some(error) => error,
                None => McpError::status(response).await,
            };
            return Self { status, rpc_error: None, mcp_error };
        }
        let body = endpoint.read_error(response.body).await.unwrap_or_default();
        let mcp_error = insufficient_scope.unwrap_or_else(|| McpError::Status {
            status,
            response: Box::new(ResponseExcerpt::new(&response.headers, &body)),
            retry_after: RetryAfter::of(&response.headers),
        });
        Self { status, rpc_error: RpcErrorBody::parse(&body), mcp_error }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_member_is_kept_unchanged() {
        let error = RpcErrorBody::parse(br#"{"id":1,"error":{"code": -32001,"more":[1.0]}}"#).unwrap();
        assert_eq!(error.code, -32001);
        assert_eq!(error.raw.get(), r#"{"code": -32001,"more":[1.0]}"#);
    }

    #[test]
    fn a_body_without_a_code_is_no_json_rpc_error() {
        for body in ["", "{}", "[]", r#"{"error":"text"}"#, r#"{"error":{}}"#, r#"{"error":{"code":"1"}}"#] {
            assert!(RpcErrorBody::parse(body.as_bytes()).is_none(), "{body}");
        }
    }
}
