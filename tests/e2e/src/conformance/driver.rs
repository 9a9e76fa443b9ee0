//! The client that the suite starts, on `portcullis-client`.
//!
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` determines the revision. The scenario and its context only determine the credentials.
//! The calls are the same in every scenario.

mod accepting_handler;
mod credentials;

use std::{env, process, sync::Arc};

use anyhow::Context as _;
use portcullis_bridge::{McpClient, McpError, McpSettings};
use portcullis_client::{Authorizer, AutoConsent, StartUrl};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch};
use portcullis_mcp::Revision;
use portcullis_metadata::SystemClock;
use serde_json::{Value, json};

use super::report::OUTCOME;

pub(crate) fn run(url: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(drive(url));
    let code = match &result {
        Ok(()) => "ok".to_owned(),
        Err(error) => error.downcast_ref::<McpError>().map_or_else(|| "another error".into(), |it| it.code().into()),
    };
    if let Err(error) = result {
        eprintln!("{error:#}");
    }
    eprintln!("{OUTCOME}{code}");
    process::exit(i32::from(code != "ok"));
}

async fn drive(url: &str) -> anyhow::Result<()> {
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").context("the suite names no protocol version")?;
    // The server negotiates older revisions.
    let revision = Revision::parse(&version).unwrap_or(Revision::V2025_11_25);
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".into());
    let context: Value = serde_json::from_str(&context)?;

    let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new(FetchSettings::default())?);
    let clock = Arc::new(SystemClock::new());
    let settings = credentials::settings(&context, revision)?;
    let authorizer = match credentials::grant(&context)? {
        Some(grant) => Authorizer::non_interactive(fetch.clone(), grant, clock, settings),
        None => Authorizer::new(fetch.clone(), Arc::new(AutoConsent::new(fetch.clone())), clock, settings),
    };
    let mut settings = McpSettings::default();
    settings.revision = revision;
    let client = McpClient::new(StartUrl::parse(url)?, fetch, Some(Arc::new(authorizer)), settings);
    let client = Arc::new(client.with_request_handler(Arc::new(accepting_handler::AcceptingHandler)));
    client.initialize().await?;
    // Not every server supports the GET stream.
    if let Ok(stream) = client.open_stream().await {
        let client = client.clone();
        tokio::spawn(async move { client.answer_stream(stream, &mut |_| ()).await });
    }
    let tools = client.call("tools/list", None).await?;
    for tool in tools["tools"].as_array().into_iter().flatten() {
        let scripted = context["toolCalls"].as_array().into_iter().flatten().find(|call| call["name"] == tool["name"]);
        let arguments = scripted.map_or_else(|| json!({ "a": 2, "b": 3 }), |call| call["arguments"].clone());
        let params = json!({ "name": tool["name"], "arguments": arguments });
        match client.call("tools/call", Some(params)).await {
            // The result of a tool does not matter.
            Ok(_) | Err(McpError::Rpc(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !revision.is_modern() {
        client.delete().await?;
    }
    Ok(())
}
