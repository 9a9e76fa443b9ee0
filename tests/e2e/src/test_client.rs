//! [`TestClient`]: the URLs of a deployment, and requests that a correct client does not send.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use portcullis_client::{ResourceToken, StartUrl};
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::Issuer;
use serde_json::Value;
use url::Url;

use super::{expect, recorder::Recorder};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const TOOLS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

/// A client of a deployment.
pub(crate) struct TestClient {
    pub(crate) endpoint: Url,
    pub(crate) issuer: Issuer,
    pub(crate) start: StartUrl,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) sign_in: SignIn,
}

/// How a user signs in, and which claim of tokens names the user.
#[derive(Clone, Copy)]
pub(crate) enum SignIn {
    /// With `login_hint`, which becomes the subject.
    Hint,
    /// On Keycloak's pages. Keycloak chooses the subject.
    Keycloak,
    /// On the pages of oidc-provider, where any name is the subject.
    OidcProvider,
}

impl TestClient {
    /// Creates a client for this endpoint and issuer.
    pub(crate) fn new(
        endpoint: &Url,
        issuer: &Issuer,
        recorder: Arc<Recorder>,
        sign_in: SignIn,
    ) -> anyhow::Result<Self> {
        let start = StartUrl::new(endpoint.clone())?;
        Ok(Self {
            endpoint: endpoint.clone(),
            issuer: issuer.clone(),
            start,
            recorder,
            sign_in,
        })
    }

    pub(crate) async fn get(&self, url: Url) -> anyhow::Result<FetchResponse> {
        Ok(self
            .recorder
            .fetch(FetchRequest::get(url, UrlPolicy::Operator))
            .await?)
    }

    /// Sends a request to the endpoint: a POST has `tools/list`, other methods have no body.
    pub(crate) async fn send(
        &self,
        method: Method,
        authorization: Option<&HeaderValue>,
        session: Option<&str>,
    ) -> anyhow::Result<FetchResponse> {
        let mut request = FetchRequest::new(method, self.endpoint.clone(), UrlPolicy::Operator)
            .header(
                header::ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            );
        if request.method == Method::POST {
            request = request.header(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            request.body = TOOLS.into();
        }
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let Some(session) = session {
            request = request.header(SESSION, HeaderValue::from_str(session)?);
        }
        Ok(self.recorder.fetch(request).await?)
    }

    /// Expects that a POST is rejected because there is no such session.
    pub(crate) async fn expect_no_session(
        &self,
        what: &str,
        token: &ResourceToken,
        session: Option<&str>,
    ) -> anyhow::Result<()> {
        let response = self
            .send(Method::POST, self.authorization(token).as_ref(), session)
            .await?;
        let body = expect::json(what, StatusCode::BAD_REQUEST, &response)?;
        expect::equal(&format!("jsonrpc of {what}"), "2.0", &body["jsonrpc"])?;
        expect::equal(
            &format!("error code of {what}"),
            -32000,
            &body["error"]["code"],
        )?;
        expect::that(
            body["error"]["message"].is_string(),
            what,
            "a message",
            &body["error"],
        )?;
        expect::equal(&format!("id of {what}"), Some(&Value::Null), body.get("id"))
    }

    /// Expects that a GET or DELETE is rejected because there is no such session.
    pub(crate) async fn expect_no_session_to(
        &self,
        method: Method,
        token: &ResourceToken,
        session: Option<&str>,
    ) -> anyhow::Result<()> {
        let what = format!(
            "{method} with {} identifier",
            if session.is_some() {
                "an unknown"
            } else {
                "no"
            }
        );
        let response = self
            .send(method, self.authorization(token).as_ref(), session)
            .await?;
        expect::equal(
            &format!("status of {what}"),
            StatusCode::BAD_REQUEST,
            response.status,
        )?;
        expect::media_type(&what, "text/plain", &response.headers)?;
        let text = String::from_utf8_lossy(&response.body).to_lowercase();
        let names_reason = text.contains("invalid") || text.contains("missing");
        expect::that(
            names_reason,
            &what,
            "a text with `invalid` or `missing`",
            text,
        )
    }

    pub(crate) fn authorization(&self, token: &ResourceToken) -> Option<HeaderValue> {
        token.authorization_for(&self.endpoint)
    }
}
