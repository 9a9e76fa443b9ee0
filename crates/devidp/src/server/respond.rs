//! Builds responses.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION,
        REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use http_body_util::Full;
use portcullis_authorization_server::{ErrorResponse, RandomError, random_secret};

use crate::authorize::page::error_html;

pub(crate) type Reply = Response<Full<Bytes>>;

/// Returns a public document. It must be revalidated, because a restarted server has new keys.
pub(crate) fn document(body: Bytes) -> Reply {
    with_headers(
        StatusCode::OK,
        body,
        [
            (CONTENT_TYPE, "application/json"),
            (CACHE_CONTROL, "no-cache"),
        ],
    )
}

/// Returns a JSON response for a single client. It must not be cached.
pub(crate) fn json_reply(status: StatusCode, body: Vec<u8>) -> Reply {
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    with_headers(status, Bytes::from(body), headers)
}

/// Returns a JSON error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2). A 401 has the
/// challenge of its scheme (RFC 6750 section 3, RFC 7617 section 2).
pub(crate) fn json_error(error: ErrorResponse) -> Reply {
    json_error_with_status(error.code.status(), error)
}

/// Like [`json_error`], but with another status.
pub(crate) fn json_error_with_status(status: StatusCode, error: ErrorResponse) -> Reply {
    let mut reply = json_reply(status, error.to_json());
    let challenge = error.code.challenge("portcullis-devidp");
    if let Some(challenge) = challenge.and_then(|value| HeaderValue::try_from(value).ok()) {
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    reply
}

/// Returns an HTML page. `html` gets the nonce of the style sheet. The page cannot be framed and
/// runs no scripts.
pub(crate) fn page(
    status: StatusCode,
    html: impl FnOnce(&str) -> String,
) -> Result<Reply, RandomError> {
    let nonce = random_secret(16)?;
    // Chromium applies `form-action` to all redirects after a form post: to the client's redirect
    // URI and to later ones. Their hosts are unknown, so the policy allows them by scheme.
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{}'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'",
        nonce.secret()
    );
    let mut reply = browser_response(
        status,
        Bytes::from(html(nonce.secret())),
        "text/html; charset=utf-8",
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        reply.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(reply)
}

/// Returns a page with an error that is not sent to the redirect URI.
pub(crate) fn error_page(status: StatusCode, reason: &str) -> Result<Reply, RandomError> {
    page(status, |nonce| error_html(reason, nonce))
}

/// Returns a redirect, or status 500 if `location` is not visible ASCII.
pub(crate) fn redirect(status: StatusCode, location: &str) -> Reply {
    match HeaderValue::from_str(location) {
        Ok(location) => {
            let mut reply = browser_response(status, Bytes::new(), "text/plain; charset=utf-8");
            reply.headers_mut().insert(LOCATION, location);
            reply
        }
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The redirect URI is not a valid header value.",
        ),
    }
}

/// Returns a plain text response for developers.
pub(crate) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    browser_response(status, text.into(), "text/plain; charset=utf-8")
}

/// Adds a cookie to a response. Returns status 500 instead if `cookie` is not visible ASCII and
/// spaces.
pub(crate) fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    match HeaderValue::from_str(cookie) {
        Ok(cookie) => {
            reply.headers_mut().append(SET_COOKIE, cookie);
            reply
        }
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The cookie is not a valid header value.",
        ),
    }
}

/// Returns a response with the security headers for browsers. The referrer policy is not
/// `no-referrer`, because browsers then send `Origin: null` with the consent form, like some pages
/// of other sites. `same-origin` also sends no referrer to other origins.
fn browser_response(status: StatusCode, body: Bytes, content_type: &'static str) -> Reply {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ];
    with_headers(status, body, headers)
}

fn with_headers<const N: usize>(
    status: StatusCode,
    body: Bytes,
    headers: [(HeaderName, &'static str); N],
) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    reply
}
