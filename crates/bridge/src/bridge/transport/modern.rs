//! Streamable HTTP without sessions (MCP 2026-07-28).

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use portcullis_discovery::OpenResponse;
use portcullis_mcp::{ErrorCode, encode_mirrored, header as names, mirrored_member};
use serde_json::{Map, Value, json};

use crate::{
    bridge::{
        context::{Context, Request},
        endpoint::{ErrorResponse, TokenRenewal},
        message::Message,
        settings::BridgeTransport,
        state::pending_requests::Purpose,
        transport::event_stream,
    },
    error::McpError,
    tool_headers::{MAX_PAGES, next_cursor},
};

/// Sends a request of 2026-07-28 and forwards the response. If the server reports a header mismatch, the tool's
/// definition is read and the request is sent again, once.
pub(crate) async fn ask(context: &Arc<Context>, request: &Request, version: &str) -> Result<(), McpError> {
    if context.settings.transport == BridgeTransport::HttpSse {
        return Err(McpError::UnavailableInRevision);
    }
    let mut tools_read = false;
    loop {
        let response = send(context, &request.message, &request.method, version, request.token_renewal).await?;
        if response.status.is_success() {
            return event_stream::forward_response(context, request, response, None).await;
        }
        let refusal = ErrorResponse::read(&context.endpoint, response).await;
        let mismatch = refusal.error.as_ref().is_some_and(|error| error.code == ErrorCode::HeaderMismatch.value());
        if !mismatch || tools_read || request.method != "tools/call" {
            return context.forward_error(request, Some(refusal)).await;
        }
        tools_read = true;
        read_tools(context, &request.message, version).await?;
    }
}

/// Sends a notification of 2026-07-28.
pub(crate) async fn notify(
    context: &Arc<Context>,
    message: &Message,
    method: &str,
    version: &str,
) -> Result<(), McpError> {
    let response = send(context, message, method, version, TokenRenewal::Allowed).await?;
    if response.status.is_success() {
        return Ok(());
    }
    Err(ErrorResponse::read(&context.endpoint, response).await.into_error())
}

/// Posts a message with the headers that repeat parts of it.
async fn send(
    context: &Context,
    message: &Message,
    method: &str,
    version: &str,
    token_renewal: TokenRenewal,
) -> Result<OpenResponse, McpError> {
    let headers = headers(context, message, method, version)?;
    let request = context.endpoint.post(context.endpoint.url(), message.text.clone(), headers);
    context.endpoint.send(request, token_renewal).await
}

/// The headers that repeat parts of a message.
fn headers(context: &Context, message: &Message, method: &str, version: &str) -> Result<HeaderMap, McpError> {
    let params = message.params();
    let mut headers = HeaderMap::new();
    let version = HeaderValue::from_str(version).map_err(|_| McpError::InvalidParams)?;
    headers.insert(names::PROTOCOL_VERSION, version);
    headers.insert(names::METHOD, encode_mirrored(method));
    if let Some(name) = mirrored_member(method).and_then(|member| params.mirrored(member)) {
        headers.insert(names::NAME, encode_mirrored(&name));
    }
    if method == "tools/call" {
        let params = params.raw().and_then(|params| serde_json::from_str::<Value>(params.get()).ok());
        headers.extend(context.tools.of_call(params.as_ref()));
    }
    Ok(headers)
}

/// Reads tool definitions up to the one that is called.
async fn read_tools(context: &Arc<Context>, call: &Message, version: &str) -> Result<(), McpError> {
    let called = call.params().mirrored("name");
    let meta = call.params().meta().and_then(|meta| serde_json::from_str(meta.get()).ok());
    let mut meta: Map<String, Value> = meta.unwrap_or_default();
    // The client must not get progress notifications of this request.
    meta.remove("progressToken");
    let mut params = json!({ "_meta": meta });
    for _ in 0..MAX_PAGES {
        let (request, answer) = context.own_request(
            "tools/list",
            Some(&params.to_string()),
            Purpose::ModernToolsList,
            TokenRenewal::Allowed,
        );
        {
            let _pending = context.pending.removed_on_drop(&request.id);
            page(context, &request, version).await?;
        }
        let Ok(answer) = answer.await else { return Err(McpError::StreamEnded) };
        let page = answer.result().and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
        let Some(page) = page else { return Ok(()) };
        match next_cursor(&page, called.as_deref()) {
            Some(cursor) => params["cursor"] = cursor,
            None => return Ok(()),
        }
    }
    Ok(())
}

async fn page(context: &Arc<Context>, request: &Request, version: &str) -> Result<(), McpError> {
    let response = send(context, &request.message, &request.method, version, request.token_renewal).await?;
    if response.status.is_success() {
        return event_stream::forward_response(context, request, response, None).await;
    }
    Err(ErrorResponse::read(&context.endpoint, response).await.into_error())
}
