//! Streamable HTTP with sessions (MCP 2025-03-26 to 2025-11-25), and its fallback to HTTP with SSE.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

use crate::{
    bridge::{
        context::{Context, Request},
        endpoint::{ErrorResponse, TokenRenewal},
        settings::BridgeTransport,
        state::{session::Session, sse_connection::SseConnection},
        transport::{event_stream, http_sse},
    },
    error::McpError,
};

/// Performs the handshake by Streamable HTTP, or by HTTP with SSE if the server rejects it as servers of 2024-11-05 do.
pub(crate) async fn initialize(context: &Arc<Context>, request: &Request) -> Result<(), McpError> {
    if context.settings.transport == BridgeTransport::HttpSse {
        let connection = http_sse::connect(context, request.token_renewal).await?;
        return initialize_over_sse(context, request, connection).await;
    }
    let response = context
        .endpoint
        .send(post(context, context.endpoint.url(), request, HeaderMap::new()), request.token_renewal)
        .await?;
    if response.status.is_success() {
        context.pending.set_session(&request.id, context.sessions.identifier(&response.headers), None);
        // There is no session yet in which the stream could be resumed.
        return event_stream::forward_response(context, request, response, None).await;
    }
    let refusal = ErrorResponse::read(&context.endpoint, response).await;
    if context.settings.transport == BridgeTransport::Any && refusal.suggests_http_sse() {
        match http_sse::connect(context, request.token_renewal).await {
            Ok(connection) => return initialize_over_sse(context, request, connection).await,
            Err(McpError::NoSseEndpoint) => {}
            Err(error) => return Err(error),
        }
    }
    context.forward_error(request, Some(refusal)).await
}

async fn initialize_over_sse(
    context: &Arc<Context>,
    request: &Request,
    connection: Arc<SseConnection>,
) -> Result<(), McpError> {
    context.pending.set_session(&request.id, None, Some(connection.clone()));
    match send_over_sse(context, request, &connection).await? {
        Sent::Answered => Ok(()),
        Sent::Lost(refusal) | Sent::Refused(refusal) => context.forward_error(request, refusal).await,
    }
}

/// Sends a request in the current session, without renewing the session.
pub(crate) async fn ask_once(context: &Arc<Context>, request: &Request) -> Result<(), McpError> {
    match send(context, request, context.sessions.current().as_ref()).await? {
        Sent::Answered => Ok(()),
        Sent::Lost(refusal) | Sent::Refused(refusal) => {
            Err(refusal.map_or(McpError::SessionLost, ErrorResponse::into_error))
        }
    }
}

/// Sends a notification or a response in this session.
pub(crate) async fn tell(
    context: &Arc<Context>,
    session: &Session,
    text: Bytes,
    token_renewal: TokenRenewal,
) -> Result<(), McpError> {
    let refusal = deliver(context, Some(session), text, token_renewal).await?;
    refusal.map_or(Ok(()), |refusal| Err(refusal.into_error()))
}

/// As [`tell`], but returns the error response.
pub(crate) async fn deliver(
    context: &Arc<Context>,
    session: Option<&Session>,
    text: Bytes,
    token_renewal: TokenRenewal,
) -> Result<Option<ErrorResponse>, McpError> {
    let connection = session.and_then(|session| session.connection.as_ref());
    let url = connection.map_or_else(|| context.endpoint.url(), |connection| connection.message_url());
    let response = context
        .endpoint
        .send(context.endpoint.post(url, text, context.sessions.headers(session)), token_renewal)
        .await?;
    context.sessions.update_identifier(session, &response.headers);
    if response.status.is_success() {
        return Ok(None);
    }
    Ok(Some(ErrorResponse::read(&context.endpoint, response).await))
}

/// The result of sending a request.
pub(crate) enum Sent {
    Answered,
    /// The server does not know the session and has not processed the request.
    Lost(Option<ErrorResponse>),
    Refused(Option<ErrorResponse>),
}

pub(crate) async fn send(
    context: &Arc<Context>,
    request: &Request,
    session: Option<&Session>,
) -> Result<Sent, McpError> {
    if let Some(connection) = session.and_then(|session| session.connection.as_ref()) {
        return send_over_sse(context, request, connection).await;
    }
    let headers = context.sessions.headers(session);
    let response =
        context.endpoint.send(post(context, context.endpoint.url(), request, headers), request.token_renewal).await?;
    context.sessions.update_identifier(session, &response.headers);
    if response.status.is_success() {
        context.start_server_stream();
        event_stream::forward_response(context, request, response, session).await?;
        return Ok(Sent::Answered);
    }
    let refusal = ErrorResponse::read(&context.endpoint, response).await;
    Ok(if session.is_some_and(|session| session.is_refused_by(&refusal)) {
        Sent::Lost(Some(refusal))
    } else {
        Sent::Refused(Some(refusal))
    })
}

/// Sends a request to a server of 2024-11-05, which responds on the open stream.
async fn send_over_sse(
    context: &Arc<Context>,
    request: &Request,
    connection: &SseConnection,
) -> Result<Sent, McpError> {
    if connection.is_lost() {
        return Ok(Sent::Lost(None));
    }
    let response = context
        .endpoint
        .send(post(context, connection.message_url(), request, HeaderMap::new()), request.token_renewal)
        .await?;
    if !response.status.is_success() {
        let refusal = ErrorResponse::read(&context.endpoint, response).await;
        return Ok(if refusal.is_unknown_session() { Sent::Lost(Some(refusal)) } else { Sent::Refused(Some(refusal)) });
    }
    drop(response);
    let mut pending = request.pending.clone();
    tokio::select! {
        // The sender is dropped with the request and never sends a value.
        _ = pending.changed() => Ok(Sent::Answered),
        () = connection.lost() => Err(McpError::StreamEnded),
    }
}

fn post(context: &Context, url: &Url, request: &Request, headers: HeaderMap) -> portcullis_discovery::FetchRequest {
    context.endpoint.post(url, request.message.text.clone(), headers)
}
