use std::{error::Error, fmt, io};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use portcullis_guard::RejectionCode;
use url::Url;

use crate::UpstreamBody;

/// Why the upstream's answer is not what the client gets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the upstream cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the upstream is not whom its certificate should show, or does not speak TLS")]
    Tls(#[source] io::Error),
    #[error("connecting to the upstream took too long")]
    ConnectTimeout,
    #[error("the upstream took too long to answer")]
    HeadTimeout,
    #[error("the upstream did not answer, or not in HTTP")]
    NoAnswer(#[source] Box<dyn Error + Send + Sync>),
    #[error("the upstream wants other credentials")]
    Unauthorized,
    #[error("the upstream switched protocols unasked")]
    SwitchingProtocols,
    #[error("the upstream redirects to {}; redirects are not followed: set the address that it means as `upstream`", Destination(.0))]
    Redirect(Option<Url>),
    #[error(
        "all connections that the upstream may have are in use; raise limits.upstream_connections if it can take more"
    )]
    TooManyConnections,
}

/// Where a redirect leads to.
struct Destination<'a>(&'a Option<Url>);

impl fmt::Display for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(url) => url.fmt(f),
            None => f.write_str("an address that cannot be read"),
        }
    }
}

impl Failure {
    /// The stable reason code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "upstream.unreachable",
            Self::Tls(_) => "upstream.tls",
            Self::ConnectTimeout => "upstream.connect_timeout",
            Self::HeadTimeout => "upstream.head_timeout",
            Self::NoAnswer(_) => "upstream.no_answer",
            Self::Unauthorized => "upstream.unauthorized",
            Self::SwitchingProtocols => "upstream.switching_protocols",
            Self::Redirect(_) => "upstream.redirect",
            Self::TooManyConnections => "upstream.too_many_connections",
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::ConnectTimeout | Self::HeadTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable(_)
            | Self::Tls(_)
            | Self::NoAnswer(_)
            | Self::Unauthorized
            | Self::SwitchingProtocols
            | Self::Redirect(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// What the client gets: a generic text, in JSON-RPC where it sent JSON-RPC. The reason goes to the log.
    pub(crate) fn response(&self, is_post: bool) -> Response<UpstreamBody> {
        let (text, json) = match self.status() {
            StatusCode::GATEWAY_TIMEOUT => (TIMEOUT_TEXT, TIMEOUT_JSON),
            StatusCode::SERVICE_UNAVAILABLE => (BUSY_TEXT, BUSY_JSON),
            _ => (BAD_TEXT, BAD_JSON),
        };
        let (content_type, body) = if is_post { ("application/json", json) } else { ("text/plain", text) };
        let mut response = Response::new(UpstreamBody::whole(Bytes::from_static(body.as_bytes())));
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(self, Self::TooManyConnections) {
            response.headers_mut().insert(RETRY_AFTER, BUSY_RETRY);
        }
        response.extensions_mut().insert(RejectionCode(self.code()));
        response
    }
}

const BAD_TEXT: &str = "The server behind this gateway cannot be used now";
const BAD_JSON: &str = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway cannot be used now"},"id":null}"#;
const BUSY_TEXT: &str = "The server behind this gateway is busy";
const BUSY_JSON: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway is busy"},"id":null}"#;
/// A request takes seconds at most as a rule, and its connection is free then.
const BUSY_RETRY: HeaderValue = HeaderValue::from_static("1");
const TIMEOUT_TEXT: &str = "The server behind this gateway did not answer in time";
const TIMEOUT_JSON: &str = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway did not answer in time"},"id":null}"#;
