//! `portcullis call URL METHOD [PARAMS]`: one call, with sign-in.

use anyhow::Context as _;
use owo_colors::{OwoColorize as _, Stream};
use portcullis_bridge::{McpClient, McpSettings};
use portcullis_client::{CredentialStore, StartUrl};
use portcullis_mcp::Revision;
use serde_json::Value;

use super::{
    sign_in::{self, SignIn},
    text::escaped_json,
};
use crate::cli;

pub(crate) fn run(arguments: &cli::Call) -> anyhow::Result<()> {
    let start = StartUrl::parse(&arguments.sign_in.url)?;
    let params = arguments.params.as_deref().map(object).transpose()?;
    super::control_runtime()?.block_on(call(arguments, start, params))
}

/// The parameters are an object or they are nothing (JSON-RPC 2.0 as MCP narrows it).
fn object(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).with_context(|| format!("PARAMS is not JSON: {text}"))?;
    anyhow::ensure!(value.is_object(), "PARAMS is not a JSON object, such as '{{\"name\":\"add\"}}': {text}");
    Ok(value)
}

async fn call(arguments: &cli::Call, start: StartUrl, params: Option<Value>) -> anyhow::Result<()> {
    let store = login_of(arguments, &start)?.unwrap_or_else(CredentialStore::in_memory);
    let SignIn { token_manager, fetch } = sign_in::prepare(&arguments.sign_in, start, store).await?;

    let mut settings = McpSettings::default();
    if arguments.modern {
        settings.revision = Revision::V2026_07_28;
    }
    let client = McpClient::with_token_manager(token_manager, fetch, settings);
    client.initialize().await?;
    let answer = client.call_with_observer(&arguments.method, params, &mut show).await;
    if !arguments.modern
        && let Err(error) = client.delete().await
    {
        tracing::debug!(error = %error, "the session was not ended");
    }
    super::print_json(&answer?)
}

/// The store, where somebody has logged in to the resource. A call leaves nothing behind otherwise.
fn login_of(arguments: &cli::Call, start: &StartUrl) -> anyhow::Result<Option<CredentialStore>> {
    if arguments.sign_in.store.is_none() && CredentialStore::user_directory().is_none() {
        return Ok(None);
    }
    let store = sign_in::store(&arguments.sign_in)?;
    Ok((!store.tokens(start)?.is_empty()).then_some(store))
}

/// What the server sends before the answer goes beside it, so that standard output holds the answer alone.
fn show(message: Value) {
    let message = escaped_json(&message.to_string());
    super::tell(message.if_supports_color(Stream::Stderr, |text| text.dimmed()));
}
