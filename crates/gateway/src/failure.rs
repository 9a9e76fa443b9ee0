use std::{error::Error, io};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use portcullis_guard::RefusalCode;

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
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::ConnectTimeout | Self::HeadTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreachable(_) | Self::Tls(_) | Self::NoAnswer(_) | Self::Unauthorized | Self::SwitchingProtocols => {
                StatusCode::BAD_GATEWAY
            }
        }
    }

    /// What the client gets: a generic text, in JSON-RPC where it sent JSON-RPC. The reason goes to the log.
    pub(crate) fn response(&self, is_post: bool) -> Response<UpstreamBody> {
        let (content_type, body) = match (is_post, self.status()) {
            (true, StatusCode::GATEWAY_TIMEOUT) => ("application/json", TIMEOUT_JSON),
            (true, _) => ("application/json", BAD_JSON),
            (false, StatusCode::GATEWAY_TIMEOUT) => ("text/plain", TIMEOUT_TEXT),
            (false, _) => ("text/plain", BAD_TEXT),
        };
        let mut response = Response::new(UpstreamBody::whole(Bytes::from_static(body.as_bytes())));
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.extensions_mut().insert(RefusalCode(self.code()));
        response
    }
}

const BAD_TEXT: &str = "The server behind this gateway cannot be used now";
const BAD_JSON: &str = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway cannot be used now"},"id":null}"#;
const TIMEOUT_TEXT: &str = "The server behind this gateway did not answer in time";
const TIMEOUT_JSON: &str = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway did not answer in time"},"id":null}"#;
