//! Builds responses.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL,
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
        WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use portcullis_authorization_server::{ErrorCode, ErrorResponse};

use super::Route;

const REALM: &str = "portcullis";
/// When a client may try again, in seconds.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Returns a public document. Clients may keep it for some minutes, in which keys do not disappear.
pub(super) fn document(body: Bytes) -> Response<Bytes> {
    with_headers(
        StatusCode::OK,
        body,
        [
            (CONTENT_TYPE, "application/json"),
            (CACHE_CONTROL, "public, max-age=300"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ],
    )
}

/// Returns a JSON response for one client (RFC 6749 section 5.1).
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response<Bytes> {
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    with_headers(status, Bytes::from(body), headers)
}

/// Returns a JSON error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2). A 401 has the
/// challenge of its scheme.
pub(super) fn error(error: ErrorResponse) -> Response<Bytes> {
    // RFC 6749 section 5.2 has no 403.
    let status = match error.code {
        ErrorCode::AccessDenied => StatusCode::BAD_REQUEST,
        code => code.status(),
    };
    let mut response = json(status, error.to_json());
    let headers = response.headers_mut();
    let challenge = error.code.challenge(REALM);
    if let Some(challenge) = challenge.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, RETRY_SECONDS);
    }
    response
}

/// Returns the response to too many requests of one address.
pub(super) fn too_many_requests(retry_after: u64) -> Response<Bytes> {
    let error = ErrorResponse::new(
        ErrorCode::TemporarilyUnavailable,
        "too many requests from this address; try again later",
    );
    let mut response = json(StatusCode::TOO_MANY_REQUESTS, error.to_json());
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(retry_after));
    response
}

/// Redirects a browser. It follows with GET, also after a POST (AU10).
pub(super) fn redirect(location: &str) -> Response<Bytes> {
    let Ok(location) = HeaderValue::from_str(location) else {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "server error\n");
    };
    let mut response = text(StatusCode::SEE_OTHER, "");
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Returns a plain text response. It cannot be framed and runs no script.
pub(super) fn text(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ];
    with_headers(status, Bytes::from_static(text.as_bytes()), headers)
}

pub(super) fn method_not_allowed(route: Route) -> Response<Bytes> {
    let mut response = text(
        StatusCode::METHOD_NOT_ALLOWED,
        "this method is not supported\n",
    );
    let allow = HeaderValue::from_static(route.allowed_methods());
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// Answers a preflight of a script of another origin.
pub(super) fn preflight(route: Route) -> Response<Bytes> {
    with_headers(
        StatusCode::NO_CONTENT,
        Bytes::new(),
        [
            (ACCESS_CONTROL_ALLOW_METHODS, route.allowed_methods()),
            // The wildcard does not include `Authorization`.
            (ACCESS_CONTROL_ALLOW_HEADERS, "*, authorization"),
            (ACCESS_CONTROL_MAX_AGE, "600"),
        ],
    )
}

/// Lets scripts of every origin read the response, without credentials.
pub(super) fn allow_cross_origin(response: &mut Response<Bytes>) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("www-authenticate, retry-after"),
    );
}

fn with_headers<const N: usize>(
    status: StatusCode,
    body: Bytes,
    headers: [(HeaderName, &'static str); N],
) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}
