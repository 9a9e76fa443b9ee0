//! Responses to administrators: JSON, also for errors, and the text of metrics.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::Full;
use serde::Serialize;

use crate::{
    administration::{ErrorDetails, ErrorResponse},
    metrics::Exposition,
};

/// An error with its status and reason code. The message may contain text from the request.
#[derive(Debug)]
pub(super) struct AdminError {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    message: Cow<'static, str>,
}

impl AdminError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn unauthorized(code: &'static str, message: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    pub(super) fn forbidden(code: &'static str, message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "admin.request_invalid", message)
    }

    /// Returns the response. The connection ends with it.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let details = ErrorDetails { code: self.code.to_owned(), message: self.message.to_string() };
        let mut response = json(self.status, &ErrorResponse { error: details });
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Returns a response with a value as its body.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    // The values are those of this program, which can be written.
    let body = serde_json::to_vec(value).unwrap_or_default();
    respond(status, HeaderValue::from_static("application/json"), body)
}

/// Returns a response with metrics in the text format.
pub(super) fn metrics(text: String) -> Response<Full<Bytes>> {
    respond(StatusCode::OK, HeaderValue::from_static(Exposition::MEDIA_TYPE), text.into())
}

fn respond(status: StatusCode, media_type: HeaderValue, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
