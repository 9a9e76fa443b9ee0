mod event_reader;

use std::sync::Arc;

use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::header as names;
use tokio::time::sleep;

pub(crate) use self::event_reader::EventReader;
use crate::{
    context::{Context, Request},
    error_response::ErrorResponse,
    state::session::Session,
};
use portcullis_mcp_client::{
    McpError,
    transport::{MediaType, ResumeAttempts, ResumePosition, is_event_stream, is_temporary},
};

/// Forwards the response to a request, and the messages before it.
///
/// An interrupted stream is resumed if it belongs to a legacy session and had an event identifier.
/// Fails when the response is neither JSON nor an event stream or has no response to the request,
/// when its body cannot be read, and when an interrupted stream cannot be resumed. Messages before
/// the error are forwarded.
pub(crate) async fn forward_response(
    context: &Arc<Context>,
    request: &Request,
    response: OpenResponse,
    session: Option<&Session>,
) -> Result<(), McpError> {
    match MediaType::of(&response.headers) {
        MediaType::Json => {
            let mut reservation = context.budget.reservation();
            let body = context
                .endpoint
                .read(response.body, &mut reservation)
                .await?;
            if context.forward(body.into(), Some(request)).await? {
                Ok(())
            } else {
                Err(McpError::InvalidResponse)
            }
        }
        MediaType::EventStream => forward_events(context, request, response.body, session).await,
        MediaType::Other => Err(McpError::unexpected_content(response).await),
    }
}

/// Forwards the messages of a stream up to the response to the request. Messages after it are
/// dropped.
async fn forward_events(
    context: &Arc<Context>,
    request: &Request,
    body: Box<dyn BodyStream>,
    session: Option<&Session>,
) -> Result<(), McpError> {
    let mut events = EventReader::new(context, body);
    let mut attempts = ResumeAttempts::default();
    loop {
        let Some(batch) = events.next().await? else {
            let Some(session) = session else {
                return Err(McpError::StreamEnded);
            };
            let body = resume(context, request, session, &events.position, &mut attempts).await?;
            events.resume(context, body);
            continue;
        };
        if batch.has_event {
            attempts.record(batch.messages.len());
        }
        for message in batch.messages {
            if context.forward(message, Some(request)).await? {
                events.drain().await;
                return Ok(());
            }
        }
    }
}

/// Resumes a legacy stream after the delay that its server requires. Failures of the network and of
/// the server, and a busy server, count as attempts; any other rejection is final.
async fn resume(
    context: &Arc<Context>,
    request: &Request,
    session: &Session,
    position: &ResumePosition,
    attempts: &mut ResumeAttempts,
) -> Result<Box<dyn BodyStream>, McpError> {
    let Some(last_event_id) = position.last_event_id() else {
        return Err(McpError::StreamEnded);
    };
    loop {
        let delay = attempts.next_delay(position);
        if attempts.are_exhausted() {
            return Err(McpError::StreamEnded);
        }
        sleep(delay).await;
        // The identifier of the session can have changed.
        let current = context
            .sessions
            .current()
            .filter(|current| current.generation == session.generation);
        let Some(current) = current else {
            return Err(McpError::SessionLost);
        };
        let mut headers = context.sessions.headers(Some(&current));
        headers.insert(names::LAST_EVENT_ID, last_event_id.clone());
        match context
            .endpoint
            .send(context.endpoint.get(headers), request.token_renewal)
            .await
        {
            Ok(response) if is_event_stream(&response) => return Ok(response.body),
            Ok(response) if is_temporary(response.status) => {}
            Ok(response) => {
                let rejection = ErrorResponse::read(&context.endpoint, response).await;
                return Err(if rejection.is_unknown_session() {
                    McpError::SessionLost
                } else {
                    McpError::StreamEnded
                });
            }
            Err(error) if error.is_network_failure() => {}
            Err(error) => return Err(error),
        }
    }
}
