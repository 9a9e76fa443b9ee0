//! [`BrokerClient`]: a registered client that a test drives.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::authorization::PkceVerifier;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::{BrokerServer, Browser};
use crate::{HttpResponse, Request};

/// A public client with a loopback redirect URI. One value makes one authorization request at a
/// time, because its requests have the same PKCE verifier.
pub struct BrokerClient {
    /// The client identifier.
    pub id: String,
    verifier: PkceVerifier,
}

/// The tokens of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPair {
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: String,
}

impl BrokerClient {
    /// The redirect URI. Nothing listens there: the browser of a test stops before it.
    pub const REDIRECT_URI: &str = "http://127.0.0.1:4321/callback";

    /// Registers a client.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn register<P>(server: &BrokerServer<P>) -> Self {
        let metadata = json!({
            "client_name": "Scenario",
            "redirect_uris": [Self::REDIRECT_URI],
            "token_endpoint_auth_method": "none",
        });
        let response = Request::post("/oauth/register", metadata.to_string())
            .send(server.address())
            .await;
        assert_eq!(response.status, 201, "{response:?}");
        let body = response.json();
        Self::with_id(body["client_id"].as_str().expect("an identifier"))
    }

    /// Returns a client with this identifier.
    ///
    /// # Panics
    /// Panics if the system has no random bytes.
    pub fn with_id(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            verifier: PkceVerifier::generate().expect("random bytes"),
        }
    }

    /// Returns the URL of an authorization request for an endpoint. Without scopes, it requests the
    /// default ones.
    pub fn authorization<P>(&self, server: &BrokerServer<P>, endpoint: &str, scope: &str) -> Url {
        let mut url = server.url("/oauth/authorize");
        let resource = server.url(endpoint);
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.id)
            .append_pair("redirect_uri", Self::REDIRECT_URI)
            .append_pair("state", "state-of-the-client")
            .append_pair("code_challenge", self.verifier.challenge().as_str())
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", resource.as_str());
        if !scope.is_empty() {
            url.query_pairs_mut().append_pair("scope", scope);
        }
        url
    }

    /// Signs a user in with a new browser, for the default scopes of `/mcp`.
    ///
    /// # Panics
    /// Panics if the user gets no token.
    pub async fn sign_in<P>(&self, server: &BrokerServer<P>, user: &str) -> TokenPair {
        self.sign_in_for(server, user, "/mcp", "").await
    }

    /// Signs a user in with a new browser, for an endpoint and scopes.
    ///
    /// # Panics
    /// Panics if the user gets no token.
    pub async fn sign_in_for<P>(
        &self,
        server: &BrokerServer<P>,
        user: &str,
        endpoint: &str,
        scope: &str,
    ) -> TokenPair {
        let authorization = self.authorization(server, endpoint, scope);
        let location = Browser::default().sign_in(&authorization, user).await;
        let code = Self::code(server, &location).await;
        let response = self.exchange(server, &code).await;
        TokenPair::parse(&response)
    }

    /// Returns the code of an authorization response, whose issuer must be the server.
    ///
    /// # Panics
    /// Panics with the logged reason if there is none.
    pub async fn code<P>(server: &BrokerServer<P>, location: &Url) -> String {
        assert!(
            location.as_str().starts_with(Self::REDIRECT_URI),
            "{location}"
        );
        let parameter = |name| Self::parameter(location, name);
        assert_eq!(parameter("iss").as_deref(), Some(server.issuer()));
        assert_eq!(parameter("state").as_deref(), Some("state-of-the-client"));
        let Some(code) = parameter("code") else {
            let reason = server.program().logged_line(&["error.code"]).await;
            panic!("no code: {location}\n{reason}");
        };
        code
    }

    /// Returns a parameter of an authorization response.
    pub fn parameter(location: &Url, name: &str) -> Option<String> {
        let mut pairs = location.query_pairs();
        pairs
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Exchanges a code.
    pub async fn exchange<P>(&self, server: &BrokerServer<P>, code: &str) -> HttpResponse {
        send(server, &self.exchange_request(code)).await
    }

    /// Returns the request that exchanges a code.
    pub fn exchange_request(&self, code: &str) -> Request {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", Self::REDIRECT_URI),
            ("client_id", &self.id),
            ("code_verifier", self.verifier.secret()),
        ];
        form("/oauth/token", &fields)
    }

    /// Refreshes a token.
    pub async fn refresh<P>(&self, server: &BrokerServer<P>, refresh_token: &str) -> HttpResponse {
        send(server, &self.refresh_request(refresh_token)).await
    }

    /// Returns the request that refreshes a token.
    pub fn refresh_request(&self, refresh_token: &str) -> Request {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("client_id", &self.id),
        ];
        form("/oauth/token", &fields)
    }

    /// Revokes a token.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn revoke<P>(&self, server: &BrokerServer<P>, token: &str) {
        let response = send(server, &self.revocation_request(token)).await;
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// Returns the request that revokes a token.
    pub fn revocation_request(&self, token: &str) -> Request {
        let fields = [("token", token), ("client_id", &self.id)];
        form("/oauth/revoke", &fields)
    }
}

impl TokenPair {
    /// Returns the tokens of a response.
    ///
    /// # Panics
    /// Panics if the response has none.
    pub fn parse(response: &HttpResponse) -> Self {
        assert_eq!(response.status, 200, "{response:?}");
        let body = response.json();
        let token = |name: &str| {
            let token = body[name].as_str();
            token
                .unwrap_or_else(|| panic!("no {name}: {body}"))
                .to_owned()
        };
        assert_eq!(body["token_type"], "Bearer", "{body}");
        Self {
            access: token("access_token"),
            refresh: token("refresh_token"),
        }
    }

    /// Returns the claims of the access token, without verifying it.
    ///
    /// # Panics
    /// Panics if it is not a JWT.
    pub fn claims(&self) -> Value {
        let payload = self.access.split('.').nth(1).expect("a JWT");
        let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64url");
        serde_json::from_slice(&payload).expect("JSON")
    }
}

fn form(path: &str, fields: &[(&str, &str)]) -> Request {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    Request::new("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body)
}

async fn send<P>(server: &BrokerServer<P>, request: &Request) -> HttpResponse {
    request.send(server.address()).await
}
