//! Who walks: where things are, and requests that no well-behaved client would send.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use portcullis_client::{ResourceToken, StartUrl};
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::Issuer;
use serde_json::Value;
use url::Url;

use super::{expect, wire::Wire};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const TOOLS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

/// The walk's view of the deployment.
pub(super) struct Visitor {
    pub(super) endpoint: Url,
    pub(super) issuer: Issuer,
    pub(super) start: StartUrl,
    pub(super) wire: Arc<Wire>,
    pub(super) sign_in: SignIn,
}

/// How a user signs in, and how tokens then name the user.
#[derive(Clone, Copy)]
pub(super) enum SignIn {
    /// By the name in `login_hint`, which is the subject.
    Hint,
    /// By Keycloak's pages; the subject is of Keycloak's choice.
    Keycloak,
    /// By the pages of oidc-provider, where any name is the subject.
    OidcProvider,
}

impl Visitor {
    pub(super) fn new(endpoint: &Url, issuer: &Issuer, wire: Arc<Wire>, sign_in: SignIn) -> anyhow::Result<Self> {
        let start = StartUrl::new(endpoint.clone())?;
        Ok(Self { endpoint: endpoint.clone(), issuer: issuer.clone(), start, wire, sign_in })
    }

    pub(super) async fn get(&self, url: Url) -> anyhow::Result<FetchResponse> {
        Ok(self.wire.fetch(FetchRequest::get(url, UrlPolicy::Operator)).await?)
    }

    /// Asks the endpoint with this method: `tools/list` in a POST, nothing otherwise.
    pub(super) async fn ask(
        &self,
        method: Method,
        authorization: Option<&HeaderValue>,
        session: Option<&str>,
    ) -> anyhow::Result<FetchResponse> {
        let mut request = FetchRequest::new(method, self.endpoint.clone(), UrlPolicy::Operator)
            .header(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if request.method == Method::POST {
            request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request.body = TOOLS.into();
        }
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let Some(session) = session {
            request = request.header(SESSION, HeaderValue::from_str(session)?);
        }
        Ok(self.wire.fetch(request).await?)
    }

    /// Expects that a POST is refused because there is no such session.
    pub(super) async fn expect_no_session(
        &self,
        what: &str,
        token: &ResourceToken,
        session: Option<&str>,
    ) -> anyhow::Result<()> {
        let answer = self.ask(Method::POST, self.authorization(token).as_ref(), session).await?;
        let body = expect::json(what, StatusCode::BAD_REQUEST, &answer)?;
        expect::equal(&format!("jsonrpc of {what}"), "2.0", &body["jsonrpc"])?;
        expect::equal(&format!("error code of {what}"), -32000, &body["error"]["code"])?;
        expect::that(body["error"]["message"].is_string(), what, "a message", &body["error"])?;
        expect::equal(&format!("id of {what}"), Some(&Value::Null), body.get("id"))
    }

    /// Expects that a GET or DELETE is refused because there is no such session.
    pub(super) async fn expect_no_session_to(
        &self,
        method: Method,
        token: &ResourceToken,
        session: Option<&str>,
    ) -> anyhow::Result<()> {
        let what = format!("{method} with {} identifier", if session.is_some() { "an unknown" } else { "no" });
        let answer = self.ask(method, self.authorization(token).as_ref(), session).await?;
        expect::equal(&format!("status of {what}"), StatusCode::BAD_REQUEST, answer.status)?;
        expect::equal(&format!("media type of {what}"), "text/plain", expect::media_type(&answer.headers))?;
        let text = String::from_utf8_lossy(&answer.body).to_lowercase();
        let is_told = text.contains("invalid") || text.contains("missing");
        expect::that(is_told, &what, "a text that says invalid or missing", text)
    }

    pub(super) fn authorization(&self, token: &ResourceToken) -> Option<HeaderValue> {
        token.authorization_for(&self.endpoint)
    }
}
