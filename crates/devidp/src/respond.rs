use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY, SET_COOKIE,
        WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use http_body_util::{BodyExt, Full};
use portcullis_metadata::{Issuer, OAuthError};
use url::form_urlencoded;

use crate::{
    faults::WRONG_ISSUER,
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    page::refusal_page,
};

/// Every answer of this server.
pub(crate) type Reply = Response<Full<Bytes>>;

/// A public document. It is asked for again each time, since a restarted server has new keys.
pub(crate) fn document(body: Bytes) -> Reply {
    with_headers(StatusCode::OK, body, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")])
}

/// An answer for one client only.
pub(crate) fn json_reply(status: StatusCode, body: Vec<u8>) -> Reply {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    with_headers(status, Bytes::from(body), headers)
}

/// An error of the token or the registration endpoint (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
pub(crate) fn json_refusal(refusal: OAuthRefusal) -> Reply {
    json_refusal_with(refusal.error.status(), refusal)
}

/// The same with another status, where HTTP has a more exact one.
pub(crate) fn json_refusal_with(status: StatusCode, refusal: OAuthRefusal) -> Reply {
    let body = OAuthError::new(refusal.error.as_str(), refusal.description).to_json();
    let mut reply = json_reply(status, body);
    let challenge = match refusal.error {
        ErrorName::InvalidClient => "Basic realm=\"portcullis-devidp\"",
        ErrorName::InvalidToken => "Bearer realm=\"portcullis-devidp\", error=\"invalid_token\"",
        _ => return reply,
    };
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    reply
}

/// A page for a person, made from a style nonce. No other site can frame it, and no script runs on it.
pub(crate) fn page(status: StatusCode, html: impl FnOnce(&str) -> String) -> Result<Reply, getrandom::Error> {
    let nonce = random_text(16)?;
    // Chromium holds every redirect after a form post against `form-action`: the one to the client's redirect URI and
    // whatever redirects follow there. Where those lead is not known here, so only their schemes are named.
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{}'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'",
        *nonce
    );
    let mut reply = guarded(status, Bytes::from(html(&nonce)), "text/html; charset=utf-8");
    if let Ok(policy) = HeaderValue::try_from(policy) {
        reply.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(reply)
}

/// A page that says why a request cannot be answered at its redirect URI.
pub(crate) fn page_refusal(status: StatusCode, reason: &str) -> Result<Reply, getrandom::Error> {
    page(status, |nonce| refusal_page(reason, nonce))
}

/// A redirect of the browser. `location` is visible ASCII.
pub(crate) fn redirect(status: StatusCode, location: &str) -> Reply {
    match HeaderValue::from_str(location) {
        Ok(location) => {
            let mut reply = guarded(status, Bytes::new(), "text/plain; charset=utf-8");
            reply.headers_mut().insert(LOCATION, location);
            reply
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "The redirect URI does not fit into a header."),
    }
}

/// A short text for a developer.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Reply {
    guarded(status, Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8")
}

/// The same answer with another issuer in it: in its redirect, or in its body.
pub(crate) async fn with_wrong_issuer(issuer: &Issuer, reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    // The body is whole already.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let encoded = |issuer: &str| form_urlencoded::byte_serialize(issuer.as_bytes()).collect::<String>();
    let location = head.headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.map(|location| {
        let (right, wrong) = (encoded(issuer.as_str()), encoded(WRONG_ISSUER));
        location.replace(&format!("iss={right}"), &format!("iss={wrong}"))
    });
    if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
        head.headers.insert(LOCATION, location);
    }
    let member = |issuer: &str| format!("\"issuer\":{}", serde_json::Value::from(issuer));
    let text = String::from_utf8_lossy(&body).replace(&member(issuer.as_str()), &member(WRONG_ISSUER));
    Response::from_parts(head, Full::new(Bytes::from(text)))
}

/// Adds a cookie to an answer. `cookie` is visible ASCII and spaces.
pub(crate) fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        reply.headers_mut().append(SET_COOKIE, cookie);
    }
    reply
}

/// What every answer to a browser carries. The referrer policy is not `no-referrer`, because browsers then send
/// `Origin: null` with the consent form, which could not be told from a foreign page's. Other origins learn
/// nothing from `same-origin` either.
fn guarded(status: StatusCode, body: Bytes, content_type: &'static str) -> Reply {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ];
    with_headers(status, body, headers)
}

fn with_headers<const N: usize>(status: StatusCode, body: Bytes, headers: [(HeaderName, &'static str); N]) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    reply.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    reply
}
