//! The client that the suite starts, on `portcullis-client`.
//!
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` determines the revision. The scenario and its context
//! determine the credentials and the arguments of tool calls. Otherwise, the calls are the same in
//! every scenario.

mod accepting_handler;
mod connect;
mod connect_options;
mod credentials;

use std::{env, path::Path, process, sync::Arc};

use anyhow::Context as _;
use portcullis_client::{Authorizer, AutoConsent, StartUrl};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch};
use portcullis_mcp::Revision;
use portcullis_mcp_client::{McpClient, McpError, McpSettings};
use portcullis_scenarios::block_on;
use serde_json::{Value, json};

use super::report::OUTCOME;

pub(crate) fn run(url: &str) -> anyhow::Result<()> {
    report(block_on(drive(url)), |error| {
        Some(error.downcast_ref::<McpError>()?.code().to_owned())
    })
}

/// Drives `portcullis connect` instead, as an MCP client that starts it.
pub(crate) fn connect(program: &Path, url: &str) -> anyhow::Result<()> {
    let driven = async { connect::drive(program, url, &version()?, &context()?).await };
    report(block_on(driven), |error| {
        Some(error.downcast_ref::<connect::Refused>()?.code.clone())
    })
}

/// Prints the token of a machine that the scenario's context describes.
pub(crate) fn print_token(url: &str) -> anyhow::Result<()> {
    let token = block_on(async {
        let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new(FetchSettings::default())?);
        let revision = Revision::parse(&version()?).unwrap_or(Revision::V2025_11_25);
        let authorizer = authorizer(&fetch, &context()?, revision)?;
        anyhow::Ok(authorizer.authorize(&StartUrl::parse(url)?).await?)
    })?;
    println!("{}", token.access_token().secret());
    Ok(())
}

/// Writes the outcome for [`verdict`](super::report::verdict), and exits.
fn report(outcome: anyhow::Result<()>, code: impl Fn(&anyhow::Error) -> Option<String>) -> ! {
    let code = match &outcome {
        Ok(()) => "ok".to_owned(),
        Err(error) => code(error).unwrap_or_else(|| "another error".into()),
    };
    if let Err(error) = outcome {
        eprintln!("{error:#}");
    }
    eprintln!("{OUTCOME}{code}");
    process::exit(i32::from(code != "ok"));
}

fn version() -> anyhow::Result<String> {
    env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").context("the suite names no protocol version")
}

fn context() -> anyhow::Result<Value> {
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".into());
    Ok(serde_json::from_str(&context)?)
}

fn authorizer(
    fetch: &Arc<dyn Fetch>,
    context: &Value,
    revision: Revision,
) -> anyhow::Result<Authorizer> {
    let builder = match credentials::grant(context)? {
        Some(grant) => Authorizer::non_interactive_builder(grant),
        None => Authorizer::builder(Arc::new(AutoConsent::new(fetch.clone()))),
    };
    Ok(builder
        .fetch(fetch.clone())
        .settings(credentials::settings(context, revision)?)
        .build()?)
}

/// Returns the arguments of a tool call: those of the context, or two numbers.
fn arguments(context: &Value, tool: &Value) -> Value {
    let given = context["toolCalls"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|call| call["name"] == tool["name"]);
    given.map_or_else(
        || json!({ "a": 2, "b": 3 }),
        |call| call["arguments"].clone(),
    )
}

/// Does what the scenario expects of a client.
async fn drive(url: &str) -> anyhow::Result<()> {
    // The server negotiates older versions.
    let revision = Revision::parse(&version()?).unwrap_or(Revision::V2025_11_25);
    let context = context()?;
    let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new(FetchSettings::default())?);
    let authorizer = authorizer(&fetch, &context, revision)?;
    let mut settings = McpSettings::default();
    settings.revision = revision;
    let client = McpClient::new(
        StartUrl::parse(url)?,
        fetch,
        Some(Arc::new(authorizer)),
        settings,
    );
    let client =
        Arc::new(client.with_request_handler(Arc::new(accepting_handler::AcceptingHandler)));
    client.initialize().await?;

    // Not every server supports the GET stream.
    if let Ok(stream) = client.open_stream().await {
        let client = client.clone();
        tokio::spawn(async move { client.answer_stream(stream, &mut |_| ()).await });
    }
    let tools = client.call("tools/list", None).await?;
    for tool in tools["tools"].as_array().into_iter().flatten() {
        let params = json!({ "name": tool["name"], "arguments": arguments(&context, tool) });
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
