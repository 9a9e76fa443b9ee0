//! [`McpError`] and [`RpcError`]: why a call has no result.

use std::fmt;

use http::StatusCode;
use portcullis_client::{ClientError, RefusedRedirect, Shortened};
use portcullis_discovery::{FetchError, OpenResponse, ResponseExcerpt, SentSecrets};
use portcullis_mcp::sse::DecodeError;
use portcullis_metadata::{EscapedText, Scopes, syntax::url_without_secrets};
use serde::{Deserialize, Deserializer, de::Visitor};
use serde_json::{Value, value::RawValue};
use url::Url;

use crate::{retry_after::RetryAfter, transport::json};

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The endpoint could not be reached.
    #[error("cannot reach {url}")]
    Unreachable {
        /// Its URL, without the query.
        url: String,
        /// The reason.
        #[source]
        error: FetchError,
    },
    /// The endpoint's response could not be read to its end.
    #[error("cannot read the endpoint's response")]
    Fetch(#[source] FetchError),
    /// The endpoint requires a token, and none could be obtained.
    #[error("cannot get a token")]
    Authorization(#[source] ClientError),
    /// The endpoint requires a token and there is no authorizer, or it rejected a new token. With
    /// `Retry-After`, the endpoint could not validate the token.
    #[error("the endpoint rejected the request as unauthorized{retry_after}")]
    Unauthorized {
        /// When to try again.
        retry_after: RetryAfter,
    },
    /// The token lacks scopes for the operation.
    #[error("the operation needs the scopes: {}", Shortened(.needed))]
    InsufficientScope {
        /// The scopes of the challenge.
        needed: Scopes,
    },
    /// The endpoint redirected to a URL outside the token's resource, or with a status that is not
    /// followed.
    #[error(transparent)]
    Redirected(#[from] RefusedRedirect),
    /// The endpoint returned an error status without a JSON-RPC error.
    #[error("the endpoint returned {status} ({response}){retry_after}")]
    Status {
        /// The status.
        status: StatusCode,
        /// An excerpt of the response.
        response: Box<ResponseExcerpt>,
        /// When to try again.
        retry_after: RetryAfter,
    },
    /// The endpoint returned a JSON-RPC error.
    #[error(transparent)]
    Rpc(Box<RpcError>),
    /// The response is not JSON, is not JSON-RPC, or does not answer the request.
    #[error("the endpoint's response is not valid for the protocol")]
    InvalidResponse,
    /// The response has another media type, such as a web page of a firewall.
    #[error("the endpoint's response is neither JSON nor an event stream ({response})")]
    UnexpectedContent {
        /// The response.
        response: Box<ResponseExcerpt>,
    },
    /// A JSON response is larger than the limit.
    #[error("the endpoint's response is too large")]
    TooLarge,
    /// A stream cannot be decoded.
    #[error(transparent)]
    InvalidStream(DecodeError),
    /// The stream ended before the response arrived.
    #[error("the stream ended before the response arrived")]
    StreamEnded,
    /// The server's handshake has an unknown protocol version.
    #[error("the server uses a protocol version that is not supported")]
    UnsupportedRevision,
    /// The operation does not exist in the negotiated protocol version.
    #[error("this protocol version has no such operation")]
    UnavailableInRevision,
    /// There was no handshake.
    #[error("there is no session yet")]
    NotInitialized,
    /// The server requested input too many times.
    #[error("the server requested input too many times")]
    TooManyInputRounds,
    /// The server has lost the session, and with it the requests in progress.
    #[error("the server has ended the session")]
    SessionLost,
    /// The server does not support HTTP with SSE, or its message URL has another origin or is
    /// outside the folder of the start URL.
    #[error(
        "the endpoint does not support HTTP with SSE, or names a message URL that cannot be used"
    )]
    NoSseEndpoint,
    /// The parameters are not an object.
    #[error("the parameters are not an object")]
    InvalidParams,
}

impl McpError {
    /// The error for a request to `url` that has no response.
    pub fn unreachable(url: &Url, error: FetchError) -> Self {
        Self::Unreachable {
            url: url_without_secrets(url).into(),
            error,
        }
    }

    /// Whether the network failed, so that a later attempt can succeed.
    pub fn is_network_failure(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Fetch(_))
    }

    /// The error for an error status, with an excerpt of the response.
    pub async fn status(response: OpenResponse) -> Self {
        let (status, retry_after) = (response.status, RetryAfter::of(&response.headers));
        Self::Status {
            status,
            response: Box::new(response.excerpt().await),
            retry_after,
        }
    }

    /// The error for an answer of another media type.
    pub async fn unexpected_content(response: OpenResponse) -> Self {
        Self::UnexpectedContent {
            response: Box::new(response.excerpt().await),
        }
    }

    /// The status of an error response, and the code of its JSON-RPC error. None for other errors.
    pub(crate) fn rejection(&self) -> Option<(StatusCode, Option<i64>)> {
        match self {
            Self::Status { status, .. } => Some((*status, None)),
            Self::Rpc(error) => Some((error.status, Some(error.code))),
            _ => None,
        }
    }

    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { error, .. } | Self::Fetch(error) => error.code(),
            Self::Authorization(error) => error.code(),
            Self::Unauthorized { .. } => "mcp.unauthorized",
            Self::InsufficientScope { .. } => "mcp.insufficient_scope",
            Self::Redirected(_) => "mcp.redirected",
            Self::Status { .. } => "mcp.status",
            Self::Rpc(_) => "mcp.rpc",
            Self::InvalidResponse | Self::UnexpectedContent { .. } => "mcp.answer",
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
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The error code.
    pub code: i64,
    /// The server's message, at most its first 8 KiB, without what was sent ([`SentSecrets`]).
    pub message: String,
    /// The server's additional data. None if it has more than 64 KiB or cannot be represented.
    pub data: Option<Value>,
    /// When to try again, for an error in the body of an HTTP error.
    pub retry_after: RetryAfter,
}

/// The maximum length of an error code, in bytes of JSON text.
const MAX_CODE: usize = 20;
/// The maximum length of a stored message, in bytes.
const MAX_MESSAGE: usize = 8 * 1024;
/// The maximum length of stored data, in bytes of JSON text. Its value can take 80 times as much.
const MAX_DATA: usize = 64 * 1024;

impl RpcError {
    /// Parses the `error` member of a message. Its text does not repeat what was sent.
    pub(crate) fn parse(error: &RawValue, status: StatusCode, sent: &SentSecrets) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            code: &'a RawValue,
            message: Excerpt,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let Members {
            code,
            message: Excerpt(message),
            data,
        } = json::object(error)?;
        let code =
            serde_json::from_str(Some(code.get()).filter(|code| code.len() <= MAX_CODE)?).ok()?;
        let data = data.filter(|data| data.get().len() <= MAX_DATA);
        let data = data.and_then(|data| serde_json::from_str(data.get()).ok());
        let message = sent.redact(&message).into_owned();
        Some(Self {
            status,
            code,
            message,
            data,
            retry_after: RetryAfter::default(),
        })
    }
}

/// The first [`MAX_MESSAGE`] bytes of a string.
struct Excerpt(String);

impl<'de> Deserialize<'de> for Excerpt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExcerptVisitor;
        impl Visitor<'_> for ExcerptVisitor {
            type Value = Excerpt;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Excerpt(
                    text[..text.floor_char_boundary(MAX_MESSAGE)].to_owned(),
                ))
            }
        }
        deserializer.deserialize_str(ExcerptVisitor)
    }
}

/// The maximum number of characters of a server's message that are shown.
const MAX_SHOWN: usize = 1000;

/// Shows the server's message as [`EscapedText`], at most 1,000 characters, so that it is safe on a
/// terminal.
impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            message,
            retry_after,
            ..
        } = self;
        write!(
            f,
            "the server reports error {code}: {}{retry_after}",
            EscapedText::first(message, MAX_SHOWN)
        )
    }
}

impl std::error::Error for RpcError {}
