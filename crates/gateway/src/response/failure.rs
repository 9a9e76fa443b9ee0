//! [`UpstreamFailure`]: why a request gets no response of the upstream, and the response to it.

use std::{fmt, io};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use portcullis_guard::RejectionCode;
use portcullis_http1::ConnectionError;
use portcullis_mcp::{ErrorCode, MessageId, error_body};
use portcullis_reason_codes::ReasonCodes;
use url::Url;

use super::body::UpstreamBody;
use crate::connection::ConnectError;

/// The codes for which a request gets no response of the upstream, each with what it means, in
/// Markdown.
pub const REASON_CODES: &[(&str, &str)] = UpstreamFailure::REASON_CODES;
const UNUSABLE_TEXT: &str = "The server behind this gateway cannot be used now";
/// In seconds. An upstream that fails is often starting again.
const UNUSABLE_RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");
const BUSY_TEXT: &str = "The server behind this gateway is busy";
/// In seconds. Most requests take seconds at most, and then their connection is free.
const BUSY_RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
const TIMEOUT_TEXT: &str = "The server behind this gateway did not answer in time";

/// The reason why the client gets no response of the upstream.
#[derive(Debug, thiserror::Error, ReasonCodes)]
pub(crate) enum UpstreamFailure {
    /// The name cannot be resolved, or no address accepts the connection.
    #[error("the upstream cannot be reached")]
    #[code = "upstream.unreachable"]
    Unreachable(#[source] io::Error),
    /// The certificate is not trusted, or the upstream does not speak TLS.
    #[error("the TLS handshake with the upstream failed")]
    #[code = "upstream.tls"]
    Tls(#[source] io::Error),
    /// The connection was not made within the connect timeout.
    #[error("connecting to the upstream timed out")]
    #[code = "upstream.connect_timeout"]
    ConnectTimeout,
    /// The head of the response did not arrive within the head timeout.
    #[error("the upstream did not respond in time")]
    #[code = "upstream.head_timeout"]
    HeadTimeout,
    /// The connection failed, or its data is not HTTP.
    #[error("the upstream sent no valid HTTP response")]
    #[code = "upstream.no_answer"]
    NoResponse(#[source] ConnectionError),
    /// The upstream responded with 401 or 407.
    #[error("the upstream requires authentication of its own")]
    #[code = "upstream.unauthorized"]
    Unauthorized,
    /// The upstream responded with 101.
    #[error("the upstream switched protocols without a request")]
    #[code = "upstream.switching_protocols"]
    SwitchingProtocols,
    /// The upstream responded with a redirect, to this address if it is valid.
    #[error("the upstream redirects to {}; redirects are not followed: set `upstream` to the final address", Destination(.0))]
    #[code = "upstream.redirect"]
    Redirect(Option<Url>),
    /// The connection limit is reached, and all connections are in use.
    #[error(
        "all connections to the upstream are in use; raise limits.upstream_connections if the upstream can serve more"
    )]
    #[code = "upstream.too_many_connections"]
    TooManyConnections,
}

/// Prints the target of a redirect.
struct Destination<'a>(&'a Option<Url>);

impl fmt::Display for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(url) => url.fmt(f),
            None => f.write_str("an invalid address"),
        }
    }
}

impl From<ConnectError> for UpstreamFailure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Unreachable(error) => Self::Unreachable(error),
            ConnectError::Tls(error) => Self::Tls(error),
        }
    }
}

impl UpstreamFailure {
    /// Returns the status of the response to the client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::ConnectTimeout | Self::HeadTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable(_)
            | Self::Tls(_)
            | Self::NoResponse(_)
            | Self::Unauthorized
            | Self::SwitchingProtocols
            | Self::Redirect(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns the response to the client: a generic text, as a JSON-RPC error with the message's
    /// id if the request is a POST. It does not contain the reason.
    pub(crate) fn response(
        &self,
        is_post: bool,
        message_id: Option<&MessageId>,
    ) -> Response<UpstreamBody> {
        let (text, retry_after) = match self.status() {
            StatusCode::GATEWAY_TIMEOUT => (TIMEOUT_TEXT, None),
            StatusCode::SERVICE_UNAVAILABLE => (BUSY_TEXT, Some(BUSY_RETRY_AFTER)),
            _ => (UNUSABLE_TEXT, Some(UNUSABLE_RETRY_AFTER)),
        };
        let (content_type, body) = if is_post {
            let id = message_id.and_then(MessageId::to_json);
            (
                "application/json",
                Bytes::from(error_body(ErrorCode::InternalError, text, id, None)),
            )
        } else {
            ("text/plain", Bytes::from_static(text.as_bytes()))
        };
        let mut response = Response::new(UpstreamBody::complete(body));
        *response.status_mut() = self.status();
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(retry_after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, retry_after);
        }
        response.extensions_mut().insert(RejectionCode(self.code()));
        response
    }
}
