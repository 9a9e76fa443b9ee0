//! Streamable HTTP with sessions (MCP 2025-03-26 to 2025-11-25), and its fallback to HTTP with SSE.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use portcullis_discovery::FetchRequest;
use url::Url;

use super::{event_stream, http_sse};
use crate::{
    context::{Context, Request},
    endpoint::TokenRenewal,
    error_response::ErrorResponse,
    settings::BridgeTransport,
    state::{session::Session, sse_connection::SseConnection},
};
use portcullis_mcp_client::McpError;

/// What became of a request.
pub(crate) enum SentRequest {
    /// Its response was forwarded.
    Answered,
    /// The server does not know the session and has not processed the request. `None` if it was not
    /// sent, because the session's connection (HTTP with SSE) has ended.
    SessionLost(Option<ErrorResponse>),
    /// The server rejected it for another reason.
    Rejected(ErrorResponse),
}

/// Performs the handshake by Streamable HTTP, or by HTTP with SSE if the server rejects it as
/// servers of 2024-11-05 do. Fails when the request cannot be sent or has no valid response. An
/// error response of the server is forwarded, unless it has no JSON-RPC error.
pub(crate) async fn initialize(context: &Arc<Context>, request: &Request) -> Result<(), McpError> {
    if context.settings.transport == BridgeTransport::HttpSse {
        let connection = http_sse::connect(context, request.token_renewal).await?;
        return initialize_over_sse(context, request, connection).await;
    }
    let response = context
        .endpoint
        .send(
            post(context, context.endpoint.url(), request, HeaderMap::new()),
            request.token_renewal,
        )
        .await?;
    if response.status.is_success() {
        context.pending.set_session(
            &request.id,
            context.sessions.identifier(&response.headers),
            None,
        );
        // There is no session yet in which the stream could be resumed.
        return event_stream::forward_response(context, request, response, None).await;
    }
    let rejection = ErrorResponse::read(&context.endpoint, response).await;
    if context.settings.transport == BridgeTransport::Any && rejection.suggests_http_sse() {
        match http_sse::connect(context, request.token_renewal).await {
            Ok(connection) => return initialize_over_sse(context, request, connection).await,
            // The server does not support this transport either; its first rejection says more.
            Err(McpError::NoSseEndpoint) => {}
            Err(error) => return Err(error),
        }
    }
    context.forward_error(request, rejection).await
}

async fn initialize_over_sse(
    context: &Arc<Context>,
    request: &Request,
    connection: Arc<SseConnection>,
) -> Result<(), McpError> {
    context
        .pending
        .set_session(&request.id, None, Some(connection.clone()));
    match send_over_sse(context, request, &connection).await? {
        SentRequest::Answered => Ok(()),
        SentRequest::Rejected(rejection) | SentRequest::SessionLost(Some(rejection)) => {
            context.forward_error(request, rejection).await
        }
        SentRequest::SessionLost(None) => Err(McpError::SessionLost),
    }
}

/// Sends a request in a session, or without one, and forwards the response. Fails when the request
/// cannot be sent, or has no valid response. Rejections are not errors.
pub(crate) async fn send_request(
    context: &Arc<Context>,
    request: &Request,
    session: Option<&Session>,
) -> Result<SentRequest, McpError> {
    if let Some(connection) = session.and_then(|session| session.connection.as_ref()) {
        return send_over_sse(context, request, connection).await;
    }
    let headers = context.sessions.headers(session);
    let response = context
        .endpoint
        .send(
            post(context, context.endpoint.url(), request, headers),
            request.token_renewal,
        )
        .await?;
    context
        .sessions
        .update_identifier(session, &response.headers);
    if response.status.is_success() {
        context.start_server_stream();
        event_stream::forward_response(context, request, response, session).await?;
        return Ok(SentRequest::Answered);
    }
    let rejection = ErrorResponse::read(&context.endpoint, response).await;
    Ok(
        if session.is_some_and(|session| session.is_lost_by(&rejection)) {
            SentRequest::SessionLost(Some(rejection))
        } else {
            SentRequest::Rejected(rejection)
        },
    )
}

/// Sends a request in the current session, without opening another one if the server has lost it.
/// Fails as [`send_request`] does, and for every rejection.
pub(crate) async fn send_request_once(
    context: &Arc<Context>,
    request: &Request,
) -> Result<(), McpError> {
    match send_request(context, request, context.sessions.current().as_ref()).await? {
        SentRequest::Answered => Ok(()),
        SentRequest::Rejected(rejection) | SentRequest::SessionLost(Some(rejection)) => {
            Err(rejection.into_error())
        }
        SentRequest::SessionLost(None) => Err(McpError::SessionLost),
    }
}

/// Sends a notification or a response in this session. Fails when it cannot be sent, and when the
/// server rejects it.
pub(crate) async fn notify(
    context: &Arc<Context>,
    session: &Session,
    text: Bytes,
    token_renewal: TokenRenewal,
) -> Result<(), McpError> {
    let rejection = deliver(context, Some(session), text, token_renewal).await?;
    rejection.map_or(Ok(()), |rejection| Err(rejection.into_error()))
}

/// Sends a notification or a response, and returns the server's rejection, if there is one. Fails
/// when it cannot be sent.
pub(crate) async fn deliver(
    context: &Arc<Context>,
    session: Option<&Session>,
    text: Bytes,
    token_renewal: TokenRenewal,
) -> Result<Option<ErrorResponse>, McpError> {
    let connection = session.and_then(|session| session.connection.as_ref());
    let url = connection.map_or_else(
        || context.endpoint.url(),
        |connection| connection.message_url(),
    );
    let response = context
        .endpoint
        .send(
            context
                .endpoint
                .post(url, text, context.sessions.headers(session)),
            token_renewal,
        )
        .await?;
    context
        .sessions
        .update_identifier(session, &response.headers);
    if response.status.is_success() {
        return Ok(None);
    }
    Ok(Some(ErrorResponse::read(&context.endpoint, response).await))
}

/// Sends a request to a server of 2024-11-05, which responds on the open stream. The task that
/// reads that stream forwards the response.
async fn send_over_sse(
    context: &Arc<Context>,
    request: &Request,
    connection: &SseConnection,
) -> Result<SentRequest, McpError> {
    if connection.is_lost() {
        return Ok(SentRequest::SessionLost(None));
    }
    let response = context
        .endpoint
        .send(
            post(context, connection.message_url(), request, HeaderMap::new()),
            request.token_renewal,
        )
        .await?;
    if !response.status.is_success() {
        let rejection = ErrorResponse::read(&context.endpoint, response).await;
        return Ok(if rejection.is_unknown_session() {
            SentRequest::SessionLost(Some(rejection))
        } else {
            SentRequest::Rejected(rejection)
        });
    }
    drop(response);
    let mut pending = request.pending.clone();
    tokio::select! {
        // The sender is dropped with the request and never sends a value.
        _ = pending.changed() => Ok(SentRequest::Answered),
        () = connection.lost() => Err(McpError::StreamEnded),
    }
}

fn post(context: &Context, url: &Url, request: &Request, headers: HeaderMap) -> FetchRequest {
    context
        .endpoint
        .post(url, request.message.text.clone(), headers)
}
