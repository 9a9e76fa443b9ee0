//! [`FetchRequest`]: an HTTP request and its limits.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::shown_url;
use crate::url_policy::UrlPolicy;

/// A request. `Debug` prints no header, body or query, because they may contain secrets.
#[derive(Clone)]
pub struct FetchRequest {
    /// The method.
    pub method: Method,
    /// The URL. The fragment is not sent.
    pub url: Url,
    /// Headers in addition to those that the transport adds, such as `Host` and `Content-Length`.
    pub headers: HeaderMap,
    /// The body. Empty if there is none.
    pub body: Bytes,
    /// The addresses to which the request may be sent.
    pub policy: UrlPolicy,
    /// The maximum length of the response body in bytes. A longer body is an error. Default: 256
    /// KiB.
    pub max_body: usize,
    /// The timeout for name resolution, connection, TLS, head and body together. Default: 10 s.
    pub timeout: Duration,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

impl FetchRequest {
    /// The default of [`max_body`](Self::max_body): 256 KiB.
    pub const MAX_BODY: usize = 256 * 1024;
    /// The default of [`timeout`](Self::timeout): 10 s.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Creates a request without headers and body.
    pub fn new(method: Method, url: Url, policy: UrlPolicy) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            policy,
            max_body: Self::MAX_BODY,
            timeout: Self::TIMEOUT,
        }
    }

    /// Creates a GET request that accepts JSON.
    pub fn get(url: Url, policy: UrlPolicy) -> Self {
        Self::new(Method::GET, url, policy).header(header::ACCEPT, JSON)
    }

    /// Creates a POST request with form fields (`application/x-www-form-urlencoded`) that accepts
    /// JSON.
    ///
    /// The body may contain tokens and secrets, so its memory is wiped on drop. The buffers of the
    /// connection are not wiped.
    pub fn post_form<'a>(
        url: Url,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
        policy: UrlPolicy,
    ) -> Self {
        let fields: Vec<(&str, &str)> = fields.into_iter().collect();
        // A byte is encoded in at most three bytes. A buffer that does not grow leaves no copies in
        // memory.
        let max_len = fields
            .iter()
            .map(|(name, value)| 3 * (name.len() + value.len()) + "=&".len())
            .sum();
        let mut body = form_urlencoded::Serializer::new(String::with_capacity(max_len));
        body.extend_pairs(fields);
        let mut request = Self::new(Method::POST, url, policy)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, FORM);
        request.body = Bytes::from_owner(Zeroizing::new(body.finish().into_bytes()));
        request
    }

    /// Creates a POST request with a JSON body that accepts JSON. The body is not validated.
    pub fn post_json(url: Url, body: impl Into<Bytes>, policy: UrlPolicy) -> Self {
        let mut request = Self::new(Method::POST, url, policy)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, JSON);
        request.body = body.into();
        request
    }

    /// Sets a header. Replaces all headers with the same name.
    #[must_use]
    pub fn header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest")
            .field("method", &self.method)
            .field("url", &shown_url(&self.url))
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("https://user:secret-password@issuer.example/token?key=secret-query").unwrap()
    }

    #[test]
    fn form_fields_are_encoded() {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", "a&b=c \u{e4}"),
        ];
        let request = FetchRequest::post_form(url(), fields, UrlPolicy::Operator);
        assert_eq!(request.method, Method::POST);
        assert_eq!(
            request.headers[header::CONTENT_TYPE],
            "application/x-www-form-urlencoded"
        );
        assert_eq!(request.headers[header::ACCEPT], "application/json");
        assert_eq!(
            &*request.body,
            b"grant_type=refresh_token&refresh_token=a%26b%3Dc+%C3%A4"
        );
    }

    #[test]
    fn a_header_replaces_one_with_the_same_name() {
        let request = FetchRequest::get(url(), UrlPolicy::Operator).header(
            header::ACCEPT,
            HeaderValue::from_static("application/jwk-set+json"),
        );
        assert_eq!(request.headers.len(), 1);
        assert_eq!(request.headers[header::ACCEPT], "application/jwk-set+json");
    }

    #[test]
    fn debug_prints_no_secrets() {
        let request = FetchRequest::post_form(
            url(),
            [("client_secret", "secret-field")],
            UrlPolicy::Operator,
        )
        .header(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer secret-header"),
        );
        let debug = format!("{request:?}");
        assert!(debug.contains("https://issuer.example/token"), "{debug}");
        assert!(!debug.contains("secret"), "{debug}");
    }
}
