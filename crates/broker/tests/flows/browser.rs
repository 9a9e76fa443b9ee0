//! A client, and the browser of its user.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use portcullis_metadata::authorization::PkceVerifier;
use url::Url;

use super::{
    ISSUER, RESOURCE, Setup,
    messages::{continued, encode, form_request, hidden, location, param, request},
};

/// A client, and the PKCE verifier of its request.
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) redirect_uri: String,
    pub(crate) verifier: PkceVerifier,
}

impl Client {
    pub(crate) fn new(id: &str, redirect_uri: &str) -> Self {
        Self {
            id: id.to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            verifier: PkceVerifier::generate().unwrap(),
        }
    }

    /// Returns the parameters of its authorization request.
    pub(crate) fn request(&self) -> Vec<(&'static str, String)> {
        vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", self.redirect_uri.clone()),
            ("state", "client-state".to_owned()),
            (
                "code_challenge",
                self.verifier.challenge().as_str().to_owned(),
            ),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", RESOURCE.to_owned()),
        ]
    }
}

/// A browser with cookies.
pub(crate) struct Browser<'s> {
    setup: &'s Setup,
    pub(crate) cookies: BTreeMap<String, String>,
    /// The headers of each form that it sends.
    pub(crate) form_headers: HeaderMap,
    /// The name of the provider at which it signs in.
    pub(crate) provider: &'static str,
}

impl<'s> Browser<'s> {
    pub(crate) fn new(setup: &'s Setup) -> Self {
        let mut form_headers = HeaderMap::new();
        form_headers.insert(header::ORIGIN, ISSUER.parse().unwrap());
        form_headers.insert("sec-fetch-site", "same-origin".parse().unwrap());
        Self {
            setup,
            cookies: BTreeMap::new(),
            form_headers,
            provider: "idp",
        }
    }

    /// Follows a sign-in. Returns the URL at the client to which the browser is redirected.
    pub(crate) async fn sign_in(&mut self, client: &Client) -> Url {
        let page = self.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK, "{page:?}");
        let url = self.approve(&page).await;
        let response = self.return_from(&url).await;
        location(&response)
    }

    pub(crate) async fn authorize(&mut self, params: &[(&str, String)]) -> Response<Bytes> {
        self.navigate(params, HeaderMap::new()).await
    }

    /// Opens the authorization page with further headers.
    pub(crate) async fn navigate(
        &mut self,
        params: &[(&str, String)],
        more: HeaderMap,
    ) -> Response<Bytes> {
        let mut headers = self.cookie_header();
        headers.extend(more);
        let path = format!("/oauth/authorize?{}", encode(params));
        let request = request(Method::GET, &path, headers, Bytes::new());
        let response = self.setup.send(request).await;
        self.keep_cookies(&response);
        response
    }

    /// Approves the request of a consent page. Returns the URL at the provider.
    pub(crate) async fn approve(&mut self, page: &Response<Bytes>) -> Url {
        self.approve_with(page, &[]).await
    }

    /// Approves the request of a consent page, with further fields of its form.
    pub(crate) async fn approve_with(
        &mut self,
        page: &Response<Bytes>,
        more: &[(&str, &str)],
    ) -> Url {
        let decision = format!("allow:{}", self.provider);
        let sealed = hidden(page, "request");
        let fields = [("request", &*sealed), ("decision", &*decision)];
        let fields: Vec<_> = fields.iter().chain(more).copied().collect();
        let response = self.post("/oauth/consent", &fields).await;
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        let url = continued(&response);
        self.remember_nonce(&url);
        url
    }

    /// Lets the provider put the nonce of this request into its next ID token.
    pub(crate) fn remember_nonce(&self, url: &Url) {
        let mut providers = self.setup.providers.iter();
        let provider = providers
            .find(|provider| provider.endpoint("").origin() == url.origin())
            .expect("a URL at a provider");
        *provider.nonce.lock() = param(url, "nonce").unwrap();
    }

    /// Answers a consent page.
    pub(crate) async fn decide(
        &mut self,
        page: &Response<Bytes>,
        decision: &str,
    ) -> Response<Bytes> {
        let sealed = hidden(page, "request");
        self.post(
            "/oauth/consent",
            &[("request", &sealed), ("decision", decision)],
        )
        .await
    }

    /// Returns from the provider with a code.
    pub(crate) async fn return_from(&mut self, url: &Url) -> Response<Bytes> {
        let state = param(url, "state").unwrap();
        self.callback(&[("code", "provider-code"), ("state", &state)])
            .await
    }

    /// Returns from the provider with these parameters.
    pub(crate) async fn callback(&mut self, params: &[(&str, &str)]) -> Response<Bytes> {
        let path = format!("/oauth/callback/{}?{}", self.provider, encode(params));
        self.get(&path).await
    }

    /// Returns the sealed request of a new consent page.
    pub(crate) async fn consent_page(&mut self, client: &Client) -> String {
        let page = self.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK, "{page:?}");
        hidden(&page, "request")
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Bytes> {
        let request = request(Method::GET, path, self.cookie_header(), Bytes::new());
        let response = self.setup.send(request).await;
        self.keep_cookies(&response);
        response
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response<Bytes> {
        let mut headers = self.cookie_header();
        headers.extend(self.form_headers.clone());
        let response = self.setup.send(form_request(path, headers, fields)).await;
        self.keep_cookies(&response);
        response
    }

    fn cookie_header(&self) -> HeaderMap {
        let pairs: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut headers = HeaderMap::new();
        if !pairs.is_empty() {
            headers.insert(header::COOKIE, pairs.join("; ").parse().unwrap());
        }
        headers
    }

    fn keep_cookies(&mut self, response: &Response<Bytes>) {
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let pair = cookie.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            assert!(name.starts_with("__Host-"), "{cookie}");
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
