//! MCP over the endpoint: a session from its first message to its end, and what is refused beside it.

use std::sync::Arc;

use anyhow::Context as _;
use http::{HeaderValue, Method, StatusCode, header};
use portcullis_bridge::{McpClient, McpSettings};
use portcullis_client::ResourceToken;
use portcullis_mcp::Revision;
use serde_json::{Value, json};

use super::{
    deployment::USER,
    discovery::bearer_challenge,
    expect,
    visitor::Visitor,
    wire::{Exchange, Wire},
};

const SESSION: &str = "mcp-session-id";
/// A well-formed identifier of no session.
const UNKNOWN_SESSION: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A client with a session of its own.
pub(super) struct Session<'a> {
    visitor: &'a Visitor,
    client: McpClient,
    token: Arc<ResourceToken>,
    identifier: String,
    /// The handshake's second message.
    initialized: Exchange,
}

impl<'a> Session<'a> {
    /// `initialize` with a token opens a session.
    pub(super) async fn open(visitor: &'a Visitor, token: Arc<ResourceToken>) -> anyhow::Result<Self> {
        let client = client(visitor, &token, Revision::V2025_11_25);
        let mark = visitor.wire.mark();
        let result = client.initialize().await?.context("expected a result of initialize, got none")?;
        let is_told = result["serverInfo"].is_object() && result["capabilities"].is_object();
        expect::that(is_told, "result of initialize", "serverInfo and capabilities", &result)?;

        let exchanges = visitor.wire.since(mark);
        expect::equal("messages of the handshake", 2, exchanges.len())?;
        let identifier = expect::header(&exchanges[0].headers, SESSION).to_owned();
        // 128 random bits in base64url alone are 22 characters.
        expect::that(identifier.len() >= 22, "session identifier", "one of 22 characters or more", identifier.len())?;
        let exposed = expect::header(&exchanges[0].headers, header::ACCESS_CONTROL_EXPOSE_HEADERS.as_str());
        let is_exposed = exposed.split(',').any(|name| name.trim().eq_ignore_ascii_case(SESSION));
        expect::that(is_exposed, "exposed headers", SESSION, exposed)?;
        let initialized = exchanges[1].clone();
        Ok(Self { visitor, client, token, identifier, initialized })
    }

    /// The handshake's second message was accepted in the session, and the tools are listed.
    pub(super) async fn tools(&self) -> anyhow::Result<()> {
        expect::equal("status of notifications/initialized", StatusCode::ACCEPTED, self.initialized.status)?;
        let carried = expect::header(&self.initialized.request_headers, SESSION);
        expect::that(
            carried == self.identifier,
            "session of notifications/initialized",
            "that of initialize",
            "another",
        )?;
        let tools = self.client.call("tools/list", None).await?;
        let mut names: Vec<_> = tools["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
        names.sort_by_key(|name| name.to_string());
        expect::equal("tools", vec!["add", "multiply", "whoami"], names)
    }

    /// Tools compute, and know who asks.
    pub(super) async fn calls(&self) -> anyhow::Result<()> {
        expect::equal("2 + 3", "5", text(&self.client.call("tools/call", Some(add(2, 3))).await?))?;
        let whoami = self.client.call("tools/call", Some(json!({ "name": "whoami", "arguments": {} }))).await?;
        let principal: Value = serde_json::from_str(text(&whoami)).context("whoami: expected JSON")?;
        expect::equal("subject", USER, &principal["subject"])?;
        expect::equal("issuer", self.visitor.issuer.as_str(), &principal["issuer"])
    }

    /// GET opens a stream.
    pub(super) async fn stream(&self) -> anyhow::Result<()> {
        let mark = self.visitor.wire.mark();
        drop(self.client.open_stream().await?);
        let exchange = self.visitor.wire.since(mark).pop().context("expected a GET, got none")?;
        expect::equal("method", Method::GET, exchange.method)?;
        expect::equal("status of the stream", StatusCode::OK, exchange.status)?;
        expect::equal("media type of the stream", "text/event-stream", expect::media_type(&exchange.headers))
    }

    /// With another user's token, this session is unknown. It continues for its owner.
    pub(super) async fn foreign(&self, other: &ResourceToken) -> anyhow::Result<()> {
        let visitor = self.visitor;
        visitor.expect_no_session("a foreign session", other, Some(&self.identifier)).await?;
        let authorization = visitor.authorization(other);
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let foreign = visitor.ask(method.clone(), authorization.as_ref(), Some(&self.identifier)).await?;
            let unknown = visitor.ask(method.clone(), authorization.as_ref(), Some(UNKNOWN_SESSION)).await?;
            expect::equal(&format!("status of a foreign {method}"), unknown.status, foreign.status)?;
            expect::equal(&format!("body of a foreign {method}"), unknown.body, foreign.body)?;
        }
        self.client.call("ping", None).await.context("expected that the session continues for its owner")?;
        Ok(())
    }

    /// Unknown and missing identifiers are refused, each method in its own way.
    pub(super) async fn unknown(&self) -> anyhow::Result<()> {
        for session in [Some(UNKNOWN_SESSION), None] {
            self.visitor.expect_no_session("a POST without its session", &self.token, session).await?;
            for method in [Method::GET, Method::DELETE] {
                self.visitor.expect_no_session_to(method, &self.token, session).await?;
            }
        }
        Ok(())
    }

    /// DELETE ends the session, and its identifier is then an unknown one.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        let mark = self.visitor.wire.mark();
        self.client.delete().await?;
        let exchange = self.visitor.wire.since(mark).pop().context("expected a DELETE, got none")?;
        expect::equal("method", Method::DELETE, exchange.method)?;
        expect::that(exchange.status.is_success(), "status of DELETE", "2xx", exchange.status)?;
        let ended = Some(self.identifier.as_str());
        self.visitor.expect_no_session("a POST to the ended session", &self.token, ended).await?;
        self.visitor.expect_no_session_to(Method::GET, &self.token, ended).await
    }
}

/// A request of 2026-07-28 is served without a session, and none is opened.
pub(super) async fn modern(visitor: &Visitor, token: &Arc<ResourceToken>) -> anyhow::Result<()> {
    let client = client(visitor, token, Revision::V2026_07_28);
    let mark = visitor.wire.mark();
    expect::equal("20 + 3", "23", text(&client.call("tools/call", Some(add(20, 3))).await?))?;
    for exchange in visitor.wire.since(mark) {
        expect::equal("session of the request", "", expect::header(&exchange.request_headers, SESSION))?;
        let identifier = expect::header(&exchange.headers, SESSION);
        expect::that(identifier.is_empty(), "session of the answer", "none", "one")?;
    }
    Ok(())
}

/// A token with one character of its signature changed is refused as invalid.
pub(super) async fn tampered(visitor: &Visitor, token: &ResourceToken) -> anyhow::Result<()> {
    let mut text = token.access_token().secret().to_owned();
    let signature = text.rfind('.').context("token: expected a signature, got none")? + 1;
    let changed = if text[signature..].starts_with('A') { "B" } else { "A" };
    text.replace_range(signature..=signature, changed);
    let authorization = HeaderValue::from_str(&format!("Bearer {text}"))?;
    let answer = visitor.ask(Method::POST, Some(&authorization), None).await?;
    expect::equal("status with a tampered token", StatusCode::UNAUTHORIZED, answer.status)?;
    let challenge = bearer_challenge(&answer.headers)?;
    expect::equal("error of the challenge", Some("invalid_token"), challenge.error.as_deref())?;
    expect::that(challenge.resource_metadata.is_some(), "resource_metadata of the challenge", "one", &challenge)
}

/// A client that has a token and gets no other.
fn client(visitor: &Visitor, token: &Arc<ResourceToken>, revision: Revision) -> McpClient {
    let mut settings = McpSettings::default();
    settings.revision = revision;
    let wire: Arc<Wire> = Arc::clone(&visitor.wire);
    let client = McpClient::new(visitor.start.clone(), wire, None, settings);
    client.set_token(Arc::clone(token));
    client
}

fn add(a: u32, b: u32) -> Value {
    json!({ "name": "add", "arguments": { "a": a, "b": b } })
}

/// The text of a tool's answer.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
