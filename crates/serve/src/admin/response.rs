//! Responses to administrators: JSON, also for errors, and the text of metrics.

use std::borrow::Cow;

use crate::administration::{ErrorDetails, ErrorResponse};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::Full;
use portcullis_telemetry::metrics::Exposition;
use serde::Serialize;

/// The body of a response whose value cannot be serialized: a constant, because its serialization
/// cannot fail.
const NOT_SERIALIZED: &str = r#"{"error":{"code":"server.not_serialized","message":"the response cannot be serialized; the log has the cause"}}"#;

/// An error with its status and reason code. The message may contain text from the request.
#[derive(Debug)]
pub(super) struct AdminError {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: Cow<'static, str>,
    /// The method of the path, if the request has another one.
    allowed_method: Option<Method>,
}

impl AdminError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            allowed_method: None,
        }
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

    /// The error for an issuer of a request that is not configured.
    pub(super) fn unknown_issuer(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "admin.issuer_unknown", message)
    }

    /// The error for another method than that of the path. The response names the method in `Allow`
    /// (RFC 9110 section 15.5.6).
    pub(super) fn method_not_allowed(allowed: Method) -> Self {
        let message = format!("the method of this path is {allowed}");
        let error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "admin.method_not_allowed",
            message,
        );
        Self {
            allowed_method: Some(allowed),
            ..error
        }
    }

    /// Returns the response. The connection ends with it.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let details = ErrorDetails {
            code: self.code.to_owned(),
            message: self.message.to_string(),
        };
        let mut response = json(self.status, &ErrorResponse { error: details });
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(Ok(method)) = self
            .allowed_method
            .as_ref()
            .map(|method| HeaderValue::from_str(method.as_str()))
        {
            headers.insert(ALLOW, method);
        }
        response
    }
}

/// Returns a response with a value as its body. If the value cannot be serialized, logs the cause
/// and returns an error with status 500.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let (status, body) = match serde_json::to_vec(value) {
        Ok(body) => (status, body),
        Err(error) => {
            tracing::error!(error = %error, "a response to an administrator cannot be serialized");
            (StatusCode::INTERNAL_SERVER_ERROR, NOT_SERIALIZED.into())
        }
    };
    respond(status, HeaderValue::from_static("application/json"), body)
}

/// Returns a response with metrics in the text format.
pub(super) fn metrics(text: String) -> Response<Full<Bytes>> {
    respond(
        StatusCode::OK,
        HeaderValue::from_static(Exposition::MEDIA_TYPE),
        text.into(),
    )
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde::ser::{Error as _, Serializer};

    use super::*;

    /// A value whose serialization fails.
    struct Unserializable;

    impl Serialize for Unserializable {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("not today"))
        }
    }

    async fn read(response: Response<Full<Bytes>>) -> ErrorDetails {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<ErrorResponse>(&body)
            .unwrap()
            .error
    }

    /// E12: a 405 names the method of the path in `Allow`; other errors have no such header.
    #[tokio::test]
    async fn another_method_is_told_the_right_one() {
        let response = AdminError::method_not_allowed(Method::POST).response();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "POST");
        assert_eq!(read(response).await.code, "admin.method_not_allowed");
        assert!(
            !AdminError::invalid("wrong")
                .response()
                .headers()
                .contains_key(ALLOW)
        );
    }

    /// E12: a value that cannot be serialized causes an error response and not an empty one.
    #[tokio::test]
    async fn a_failed_serialization_is_an_error() {
        let response = json(StatusCode::OK, &Unserializable);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(read(response).await.code, "server.not_serialized");
    }
}
