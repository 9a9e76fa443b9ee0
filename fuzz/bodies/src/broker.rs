//! Feeds input to everything that the broker reads: queries, forms, cookies, registrations,
//! documents and tokens.
//!
//! Inputs name what differs in each run by a word in capital letters: `CLIENT` is the identifier of
//! a registered client.

mod browser;
mod clients;
mod prepared;
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "shared with the tests of the broker"
)]
#[path = "../../../crates/broker/tests/flows/support.rs"]
mod support;
mod tokens;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use url::Url;

pub use self::{
    browser::{
        broker_authorization, broker_callback, broker_consent, broker_cookies, broker_sealed_form,
    },
    clients::{broker_client_document, broker_registration},
    tokens::{broker_keys, broker_logout_token, broker_refresh_token, broker_token_forms},
};

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns a request. `None` if the path or a header cannot be sent.
fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Option<Request<Bytes>> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let name = header::HeaderName::from_bytes(name.as_bytes()).ok()?;
        all.append(name, HeaderValue::from_str(value).ok()?);
    }
    let mut request = Request::new(body.into());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().ok()?;
    *request.headers_mut() = all;
    Some(request)
}

/// Returns where a response sends the browser: by a redirect, or by a page that continues.
fn destination(response: &Response<Bytes>) -> Option<Url> {
    if let Some(location) = response.headers().get(header::LOCATION) {
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let location = location
            .to_str()
            .ok()
            .and_then(|text| Url::parse(text).ok());
        assert!(location.is_some(), "a redirect to a URL");
        return location;
    }
    let is_page = std::str::from_utf8(response.body())
        .is_ok_and(|text| text.contains(r#"http-equiv="refresh""#));
    is_page.then(|| support::continued(response))
}

/// Asserts that a response sends the browser to the provider, to a redirect URI of the prepared
/// client, or nowhere.
fn assert_stays(response: &Response<Bytes>) {
    if let Some(url) = destination(response) {
        let is_client = url.host_str() == Some("127.0.0.1") && url.path() == "/callback";
        let is_provider = url.as_str().starts_with(support::PROVIDER);
        assert!(is_client || is_provider, "{url}");
    }
}

/// Returns the text with one character changed for each two bytes of the input: the position, and
/// the character.
fn changed(text: &str, data: &[u8]) -> String {
    const CHARACTERS: &[u8] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=. ";
    let mut bytes = text.as_bytes().to_vec();
    for pair in data.chunks_exact(2) {
        let position = usize::from(pair[0]) * bytes.len() / 256;
        let character = CHARACTERS[usize::from(pair[1]) % CHARACTERS.len()];
        match pair[1] {
            // Also another length.
            250..=252 => bytes.truncate(position.max(1)),
            253..=255 => bytes.insert(position, character),
            _ => bytes[position] = character,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
