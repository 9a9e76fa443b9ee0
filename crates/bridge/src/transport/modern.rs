//! Streamable HTTP without sessions (MCP 2026-07-28).

mod message_headers;

use std::sync::Arc;

use portcullis_discovery::OpenResponse;
use portcullis_mcp::ErrorCode;
use serde_json::{Map, Value, json, value::RawValue};

use self::message_headers::message_headers;
use super::event_stream;
use crate::{
    context::{Context, Request},
    endpoint::TokenRenewal,
    error_response::ErrorResponse,
    message::Message,
    settings::BridgeTransport,
    state::pending_requests::Purpose,
};
use portcullis_mcp_client::{
    McpError,
    transport::{MAX_PAGES, next_cursor},
};

/// Sends a request of 2026-07-28 and forwards the response. If the server reports a header
/// mismatch, the tool's definition is read and the request is sent again, once. Fails with
/// [`McpError::UnavailableInRevision`] if only HTTP with SSE is to be used, and as
/// [`event_stream::forward_response`]. An error response of the server is forwarded, unless it has
/// no JSON-RPC error.
pub(crate) async fn send_request(
    context: &Arc<Context>,
    request: &Request,
    version: &str,
) -> Result<(), McpError> {
    if context.settings.transport == BridgeTransport::HttpSse {
        return Err(McpError::UnavailableInRevision);
    }
    let mut tools_read = false;
    loop {
        let response = post(
            context,
            &request.message,
            &request.method,
            version,
            request.token_renewal,
        )
        .await?;
        if response.status.is_success() {
            return event_stream::forward_response(context, request, response, None).await;
        }
        let rejection = ErrorResponse::read(&context.endpoint, response).await;
        let is_mismatch = rejection
            .rpc_error()
            .is_some_and(|error| error.code == ErrorCode::HeaderMismatch.value());
        if !is_mismatch || tools_read || request.method != "tools/call" {
            return context.forward_error(request, rejection).await;
        }
        tools_read = true;
        read_tools(context, &request.message, version).await?;
    }
}

/// Sends a notification of 2026-07-28. Fails when it cannot be sent, and when the server rejects
/// it.
pub(crate) async fn notify(
    context: &Arc<Context>,
    message: &Message,
    method: &str,
    version: &str,
) -> Result<(), McpError> {
    let response = post(context, message, method, version, TokenRenewal::Allowed).await?;
    if response.status.is_success() {
        return Ok(());
    }
    Err(ErrorResponse::read(&context.endpoint, response)
        .await
        .into_error())
}

/// Posts a message with the headers that repeat parts of it.
async fn post(
    context: &Context,
    message: &Message,
    method: &str,
    version: &str,
    token_renewal: TokenRenewal,
) -> Result<OpenResponse, McpError> {
    let headers = message_headers(message.params(), method, version, &context.tools)?;
    let request = context
        .endpoint
        .post(context.endpoint.url(), message.text.clone(), headers);
    context.endpoint.send(request, token_renewal).await
}

/// Reads tool definitions up to the one that is called, at most [`MAX_PAGES`] pages. The
/// definitions are stored when the responses are forwarded ([`Purpose::ModernToolsList`]).
async fn read_tools(context: &Arc<Context>, call: &Message, version: &str) -> Result<(), McpError> {
    let Some(called) = call.params().name() else {
        return Ok(());
    };
    let meta = call
        .params()
        .meta()
        .and_then(|meta| serde_json::from_str(meta.get()).ok());
    let mut meta: Map<String, Value> = meta.unwrap_or_default();
    // The client must not get progress notifications of this request.
    meta.remove("progressToken");
    let mut params = json!({ "_meta": meta });
    for _ in 0..MAX_PAGES {
        let Some(page) = request_page(context, &params, version).await? else {
            return Ok(());
        };
        match next_cursor(&page, &called) {
            Some(cursor) => params["cursor"] = cursor.into(),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Requests one page of the tool list. `None` if the server reports an error.
async fn request_page(
    context: &Arc<Context>,
    params: &Value,
    version: &str,
) -> Result<Option<Box<RawValue>>, McpError> {
    let (request, answer) = context.own_request(
        "tools/list",
        Some(&params.to_string()),
        Purpose::ModernToolsList,
        TokenRenewal::Allowed,
    );
    {
        let _pending = context.pending.removed_on_drop(&request.id);
        let response = post(
            context,
            &request.message,
            &request.method,
            version,
            request.token_renewal,
        )
        .await?;
        if !response.status.is_success() {
            return Err(ErrorResponse::read(&context.endpoint, response)
                .await
                .into_error());
        }
        event_stream::forward_response(context, &request, response, None).await?;
    }
    let answer = answer.await.map_err(|_| McpError::StreamEnded)?;
    Ok(answer.result().map(ToOwned::to_owned))
}
