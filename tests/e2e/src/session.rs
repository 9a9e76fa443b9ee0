//! [`Session`]: an MCP session from `initialize` to DELETE, and rejected requests.

use std::sync::Arc;

use anyhow::Context as _;
use http::{HeaderValue, Method, StatusCode, header};
use portcullis_client::ResourceToken;
use portcullis_mcp::Revision;
use portcullis_mcp_client::{McpClient, McpSettings};
use serde_json::{Value, json};

use super::{
    deployment::USER,
    discovery::bearer_challenge,
    expect,
    recorder::{Exchange, Recorder},
    test_client::TestClient,
};

const SESSION: &str = "mcp-session-id";
/// A well-formed identifier of no session.
const UNKNOWN_SESSION: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A client with a session.
pub(crate) struct Session<'a> {
    test_client: &'a TestClient,
    client: McpClient,
    token: Arc<ResourceToken>,
    identifier: String,
    /// The exchange of `notifications/initialized`.
    initialized: Exchange,
}

impl<'a> Session<'a> {
    pub(crate) async fn open(
        test_client: &'a TestClient,
        token: Arc<ResourceToken>,
    ) -> anyhow::Result<Self> {
        let client = client(test_client, &token, Revision::V2025_11_25);
        let start = test_client.recorder.position();
        let result = client
            .initialize()
            .await?
            .context("expected a result of initialize, got none")?;
        let is_complete = result["serverInfo"].is_object() && result["capabilities"].is_object();
        expect::that(
            is_complete,
            "result of initialize",
            "serverInfo and capabilities",
            &result,
        )?;

        let exchanges = test_client.recorder.since(start);
        expect::equal("messages of the handshake", 2, exchanges.len())?;
        let identifier = expect::header(&exchanges[0].headers, SESSION)?.to_owned();

        // 128 random bits in base64url have 22 characters.
        expect::that(
            identifier.len() >= 22,
            "session identifier",
            "one of 22 characters or more",
            identifier.len(),
        )?;
        let exposed = expect::header(
            &exchanges[0].headers,
            header::ACCESS_CONTROL_EXPOSE_HEADERS.as_str(),
        )?;
        let is_exposed = exposed
            .split(',')
            .any(|name| name.trim().eq_ignore_ascii_case(SESSION));
        expect::that(is_exposed, "exposed headers", SESSION, exposed)?;
        let initialized = exchanges[1].clone();
        Ok(Self {
            test_client,
            client,
            token,
            identifier,
            initialized,
        })
    }

    /// Checks that `notifications/initialized` was accepted in the session, and lists the tools.
    pub(crate) async fn tools(&self) -> anyhow::Result<()> {
        expect::equal(
            "status of notifications/initialized",
            StatusCode::ACCEPTED,
            self.initialized.status,
        )?;
        let sent = expect::header(&self.initialized.request_headers, SESSION)?;
        expect::that(
            sent == self.identifier,
            "session of notifications/initialized",
            "that of initialize",
            "another",
        )?;
        let tools = self.client.call("tools/list", None).await?;
        let mut names: Vec<_> = tools["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|tool| &tool["name"])
            .collect();
        names.sort_by_key(|name| name.to_string());
        expect::equal("tools", vec!["add", "multiply", "whoami"], names)
    }

    /// Calls the tools, one of which returns the principal.
    pub(crate) async fn calls(&self) -> anyhow::Result<()> {
        expect::equal(
            "2 + 3",
            "5",
            text(&self.client.call("tools/call", Some(add(2, 3))).await?),
        )?;
        let whoami = self
            .client
            .call(
                "tools/call",
                Some(json!({ "name": "whoami", "arguments": {} })),
            )
            .await?;
        let principal: Value =
            serde_json::from_str(text(&whoami)).context("whoami: expected JSON")?;
        expect::equal("subject", USER, &principal["subject"])?;
        expect::equal(
            "issuer",
            self.test_client.issuer.as_str(),
            &principal["issuer"],
        )
    }

    /// Opens a stream with GET.
    pub(crate) async fn stream(&self) -> anyhow::Result<()> {
        let start = self.test_client.recorder.position();
        drop(self.client.open_stream().await?);
        let exchange = self
            .test_client
            .recorder
            .since(start)
            .pop()
            .context("expected a GET, got none")?;
        expect::equal("method", Method::GET, exchange.method)?;
        expect::equal("status of the stream", StatusCode::OK, exchange.status)?;
        expect::media_type("the stream", "text/event-stream", &exchange.headers)
    }

    /// Checks that the session is unknown with another user's token, and continues for its owner.
    pub(crate) async fn foreign(&self, other: &ResourceToken) -> anyhow::Result<()> {
        let test_client = self.test_client;
        test_client
            .expect_no_session("a foreign session", other, Some(&self.identifier))
            .await?;
        let authorization = test_client.authorization(other);
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let foreign = test_client
                .send(
                    method.clone(),
                    authorization.as_ref(),
                    Some(&self.identifier),
                )
                .await?;
            let unknown = test_client
                .send(
                    method.clone(),
                    authorization.as_ref(),
                    Some(UNKNOWN_SESSION),
                )
                .await?;
            expect::equal(
                &format!("status of a foreign {method}"),
                unknown.status,
                foreign.status,
            )?;
            expect::equal(
                &format!("body of a foreign {method}"),
                unknown.body,
                foreign.body,
            )?;
        }
        self.client
            .call("ping", None)
            .await
            .context("expected that the session continues for its owner")?;
        Ok(())
    }

    /// Checks that unknown and missing identifiers are rejected, in the format of each method.
    pub(crate) async fn unknown(&self) -> anyhow::Result<()> {
        for session in [Some(UNKNOWN_SESSION), None] {
            self.test_client
                .expect_no_session("a POST without its session", &self.token, session)
                .await?;
            for method in [Method::GET, Method::DELETE] {
                self.test_client
                    .expect_no_session_to(method, &self.token, session)
                    .await?;
            }
        }
        Ok(())
    }

    /// Ends the session with DELETE and checks that its identifier is then unknown.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let start = self.test_client.recorder.position();
        self.client.delete().await?;
        let exchange = self
            .test_client
            .recorder
            .since(start)
            .pop()
            .context("expected a DELETE, got none")?;
        expect::equal("method", Method::DELETE, exchange.method)?;
        expect::that(
            exchange.status.is_success(),
            "status of DELETE",
            "2xx",
            exchange.status,
        )?;
        let ended = Some(self.identifier.as_str());
        self.test_client
            .expect_no_session("a POST to the ended session", &self.token, ended)
            .await?;
        self.test_client
            .expect_no_session_to(Method::GET, &self.token, ended)
            .await
    }
}

/// Checks that a request of 2026-07-28 is served without a session, and opens none.
pub(crate) async fn modern(
    test_client: &TestClient,
    token: &Arc<ResourceToken>,
) -> anyhow::Result<()> {
    let client = client(test_client, token, Revision::V2026_07_28);
    let start = test_client.recorder.position();
    expect::equal(
        "20 + 3",
        "23",
        text(&client.call("tools/call", Some(add(20, 3))).await?),
    )?;
    for exchange in test_client.recorder.since(start) {
        expect::that(
            !exchange.request_headers.contains_key(SESSION),
            "session of the request",
            "none",
            "one",
        )?;
        expect::that(
            !exchange.headers.contains_key(SESSION),
            "session of the response",
            "none",
            "one",
        )?;
    }
    Ok(())
}

/// Checks that a token with one changed character in its signature is rejected as invalid.
pub(crate) async fn tampered(
    test_client: &TestClient,
    token: &ResourceToken,
) -> anyhow::Result<()> {
    let mut text = token.access_token().secret().to_owned();
    let signature = text
        .rfind('.')
        .context("token: expected a signature, got none")?
        + 1;
    let changed = if text[signature..].starts_with('A') {
        "B"
    } else {
        "A"
    };
    text.replace_range(signature..=signature, changed);
    let authorization = HeaderValue::from_str(&format!("Bearer {text}"))?;
    let response = test_client
        .send(Method::POST, Some(&authorization), None)
        .await?;
    expect::equal(
        "status with a tampered token",
        StatusCode::UNAUTHORIZED,
        response.status,
    )?;
    let challenge = bearer_challenge(&response.headers)?;
    expect::equal(
        "error of the challenge",
        Some("invalid_token"),
        challenge.error.as_deref(),
    )?;
    expect::that(
        challenge.resource_metadata.is_some(),
        "resource_metadata of the challenge",
        "one",
        &challenge,
    )
}

/// Returns a client with this token and without an authorizer.
fn client(test_client: &TestClient, token: &Arc<ResourceToken>, revision: Revision) -> McpClient {
    let mut settings = McpSettings::default();
    settings.revision = revision;
    let recorder: Arc<Recorder> = Arc::clone(&test_client.recorder);
    let client = McpClient::new(test_client.start.clone(), recorder, None, settings);
    client.set_token(Arc::clone(token));
    client
}

fn add(a: u32, b: u32) -> Value {
    json!({ "name": "add", "arguments": { "a": a, "b": b } })
}

/// Returns the text of a tool's result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
