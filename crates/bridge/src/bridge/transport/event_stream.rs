//! Responses that are event streams: reads them, and resumes them after a disconnection.

mod event_reader;
mod resumption;

use std::sync::Arc;

use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::{header as names, sse::Decoder};
use tokio::time::sleep;

pub(crate) use self::{
    event_reader::EventReader,
    resumption::{ResumeAttempts, ResumePosition},
};
use crate::{
    bridge::{
        context::{Context, Request},
        endpoint::ErrorResponse,
        state::session::Session,
    },
    error::McpError,
    response::MediaType,
    resumption::MAX_RESUMES,
};

/// Forwards the response to a request, and the messages before it.
///
/// An interrupted stream is resumed if it belongs to a legacy session and had an event identifier.
pub(crate) async fn forward_response(
    context: &Arc<Context>,
    request: &Request,
    response: OpenResponse,
    session: Option<&Session>,
) -> Result<(), McpError> {
    match MediaType::of(&response.headers) {
        MediaType::Json => {
            let mut reservation = context.budget.reservation();
            let body = context.endpoint.read(response.body, &mut reservation).await?;
            if context.forward(body.into(), Some(request)).await? { Ok(()) } else { Err(McpError::InvalidResponse) }
        }
        MediaType::EventStream => read(context, request, response.body, session).await,
        MediaType::Other => Err(McpError::unexpected_content(response).await),
    }
}

async fn read(
    context: &Arc<Context>,
    request: &Request,
    body: Box<dyn BodyStream>,
    session: Option<&Session>,
) -> Result<(), McpError> {
    let (mut events, mut attempts) = (EventReader::new(context, body), ResumeAttempts::default());
    loop {
        match events.next().await? {
            Some(batch) => {
                attempts.record(&mut events, &batch);
                let mut answered = false;
                for data in batch {
                    answered = answered || context.forward(data, Some(request)).await?;
                }
                if answered {
                    events.drain().await;
                    return Ok(());
                }
            }
            None => {
                let Some(session) = session else { return Err(McpError::StreamEnded) };
                events.body = resume(context, request, session, &events.position, &mut attempts).await?;
                events.decoder = Decoder::new(context.settings.max_message);
            }
        }
    }
}

/// Resumes a legacy stream after the delay that its server requires.
async fn resume(
    context: &Arc<Context>,
    request: &Request,
    session: &Session,
    position: &ResumePosition,
    attempts: &mut ResumeAttempts,
) -> Result<Box<dyn BodyStream>, McpError> {
    let Some(last_event) = position.last_event() else { return Err(McpError::StreamEnded) };
    loop {
        let wait = attempts.next_delay(position);
        if attempts.without_event > MAX_RESUMES {
            return Err(McpError::StreamEnded);
        }
        sleep(wait).await;
        // The identifier of the session can have changed.
        let current = context.sessions.current().filter(|current| current.generation == session.generation);
        let Some(current) = current else { return Err(McpError::SessionLost) };
        let mut headers = context.sessions.headers(Some(&current));
        headers.insert(names::LAST_EVENT_ID, last_event.clone());
        match context.endpoint.send(context.endpoint.get(headers), request.token_renewal).await {
            Ok(answer) if answer.status.is_success() && MediaType::of(&answer.headers) == MediaType::EventStream => {
                return Ok(answer.body);
            }
            Ok(answer) if answer.status.is_server_error() => {}
            Ok(answer) => {
                let refusal = ErrorResponse::read(&context.endpoint, answer).await;
                return Err(if refusal.is_unknown_session() { McpError::SessionLost } else { McpError::StreamEnded });
            }
            Err(McpError::Fetch(_)) => {}
            Err(error) => return Err(error),
        }
    }
}
