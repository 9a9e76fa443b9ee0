//! `portcullis call URL METHOD [PARAMS]`: from an address to an answer, token and all.

use std::sync::Arc;

use anyhow::Context as _;
use owo_colors::{OwoColorize as _, Stream};
use portcullis_client::{
    Authorizer, AuthorizerSettings, AutoConsent, Interaction, LoopbackRedirect, McpClient, McpSettings, StartUrl,
};
use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_mcp::Revision;
use portcullis_metadata::SystemClock;
use serde_json::Value;
use url::Url;

use crate::cli;

pub(crate) fn run(arguments: &cli::Call) -> anyhow::Result<()> {
    let start = StartUrl::parse(&arguments.url)?;
    let params = arguments.params.as_deref().map(object).transpose()?;
    super::control_runtime()?.block_on(call(arguments, start, params))
}

/// The parameters are an object or they are nothing (JSON-RPC 2.0 as MCP narrows it).
fn object(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).with_context(|| format!("PARAMS is no JSON: {text}"))?;
    anyhow::ensure!(value.is_object(), "PARAMS is no JSON object, such as '{{\"name\":\"add\"}}': {text}");
    Ok(value)
}

async fn call(arguments: &cli::Call, start: StartUrl, params: Option<Value>) -> anyhow::Result<()> {
    let fetch = Arc::new(HttpFetch::new(FetchSettings::default())?);
    let interaction: Arc<dyn Interaction> = if arguments.auto_consent {
        Arc::new(AutoConsent::new(Arc::clone(&fetch) as _))
    } else {
        let open = if arguments.no_browser { print_url } else { open_browser };
        Arc::new(LoopbackRedirect::bind(open).await?)
    };
    let clock = Arc::new(SystemClock::new());
    let authorizer = Authorizer::new(Arc::clone(&fetch) as _, interaction, clock, AuthorizerSettings::default());

    let mut settings = McpSettings::default();
    if arguments.modern {
        settings.revision = Revision::V2026_07_28;
    }
    let client = McpClient::new(start, fetch, Some(Arc::new(authorizer)), settings);
    client.initialize().await?;
    let answer = client.call_observed(&arguments.method, params, &mut show).await;
    if !arguments.modern
        && let Err(error) = client.delete().await
    {
        tracing::debug!(error = %error, "the session was not ended");
    }
    Ok(super::print(serde_json::to_string_pretty(&answer?)?)?)
}

/// What the server sends before the answer goes beside it, so that standard output holds the answer alone.
fn show(message: Value) {
    super::tell(message.if_supports_color(Stream::Stderr, |text| text.dimmed()));
}

fn open_browser(url: &Url) {
    super::tell(format_args!("opening the browser for your consent; if nothing opens, visit\n{url}"));
    if let Err(error) = webbrowser::open(url.as_str()) {
        tracing::debug!(error = %error, "no browser opened");
    }
}

fn print_url(url: &Url) {
    super::tell(format_args!("for your consent, visit\n{url}"));
}
