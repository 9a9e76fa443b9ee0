//! [`McpError`] and [`RpcError`].

use std::fmt;

use http::StatusCode;
use portcullis_discovery::FetchError;
use portcullis_mcp::sse::DecodeError;
use portcullis_metadata::{EscapedText, Scopes};
use serde_json::Value;

use portcullis_client::{ClientError, RefusedRedirect};

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The endpoint could not be reached, or the exchange broke off.
    #[error("cannot reach the endpoint")]
    Fetch(#[source] FetchError),
    /// The endpoint wants a token, and none could be got.
    #[error("cannot get a token")]
    Authorization(#[source] ClientError),
    /// The endpoint wants a token and there is no authorizer, or it refused a token that is new.
    #[error("the endpoint refused the request as unauthorized")]
    Unauthorized,
    /// The token's scopes are too few for the operation.
    #[error("the operation needs the scopes: {needed}")]
    InsufficientScope {
        /// What the challenge names.
        needed: Scopes,
    },
    /// The endpoint redirected to a URL that the token is not for, or in a way that is not followed.
    #[error(transparent)]
    Redirected(#[from] RefusedRedirect),
    /// The endpoint answered with a status that says no more.
    #[error("the endpoint answered {status}")]
    Status {
        /// The status.
        status: StatusCode,
    },
    /// The endpoint reports an error.
    #[error(transparent)]
    Rpc(RpcError),
    /// The answer is neither JSON nor a stream, or no JSON-RPC message.
    #[error("the endpoint's answer is not what the protocol wants")]
    InvalidResponse,
    /// A JSON answer is larger than the limit.
    #[error("the endpoint's answer is too large")]
    TooLarge,
    /// A stream cannot be read on.
    #[error(transparent)]
    InvalidStream(DecodeError),
    /// The stream ended before the response came.
    #[error("the stream ended before the response came")]
    StreamEnded,
    /// The server answered the handshake with a revision that is not known here.
    #[error("the server speaks a revision of the protocol that is not supported")]
    UnsupportedRevision,
    /// The operation does not exist in the revision that is spoken.
    #[error("this revision of the protocol has no such operation")]
    UnavailableInRevision,
    /// The handshake has not been made.
    #[error("there is no session yet")]
    NotInitialized,
    /// The server went on asking for input.
    #[error("the server asks for input again and again")]
    TooManyInputRounds,
    /// The server does not know the session any more, and what was under way in it is lost.
    #[error("the server has ended the session")]
    SessionLost,
    /// The server does not speak HTTP with SSE either, or names an address of another origin for messages.
    #[error("the endpoint speaks no transport that is known here")]
    NoSseEndpoint,
    /// Parameters are an object, or there are none.
    #[error("the parameters are not an object")]
    InvalidParams,
}

impl McpError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.code(),
            Self::Authorization(error) => error.code(),
            Self::Unauthorized => "mcp.unauthorized",
            Self::InsufficientScope { .. } => "mcp.insufficient_scope",
            Self::Redirected(_) => "mcp.redirected",
            Self::Status { .. } => "mcp.status",
            Self::Rpc(_) => "mcp.rpc",
            Self::InvalidResponse => "mcp.answer",
            Self::TooLarge => "mcp.too_large",
            Self::InvalidStream(error) => error.code(),
            Self::StreamEnded => "mcp.ended",
            Self::UnsupportedRevision => "mcp.revision",
            Self::UnavailableInRevision => "mcp.not_in_revision",
            Self::NotInitialized => "mcp.not_initialized",
            Self::TooManyInputRounds => "mcp.rounds",
            Self::SessionLost => "mcp.session_lost",
            Self::NoSseEndpoint => "mcp.no_sse_endpoint",
            Self::InvalidParams => "mcp.params",
        }
    }
}

/// An error that a server reports (JSON-RPC 2.0 section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcError {
    /// The HTTP status it came with.
    pub status: StatusCode,
    /// Its code.
    pub code: i64,
    /// Its text, as the server wrote it.
    pub message: String,
    /// What else the server says.
    pub data: Option<Value>,
}

impl RpcError {
    /// Reads the `error` member of a message.
    pub(crate) fn of(message: &Value, status: StatusCode) -> Option<Self> {
        let error = message.get("error")?;
        Some(Self {
            status,
            code: error.get("code")?.as_i64()?,
            message: error.get("message")?.as_str()?.to_owned(),
            data: error.get("data").cloned(),
        })
    }
}

/// The most characters of a server's text that are shown.
const MAX_SHOWN: usize = 1000;

/// The server's text as [`EscapedText`], 1,000 characters at most, so that it is safe on a terminal.
impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server reports error {}: {}", self.code, EscapedText::first(&self.message, MAX_SHOWN))
    }
}

impl std::error::Error for RpcError {}
