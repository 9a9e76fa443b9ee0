//! The stream of messages that the server sends on its own initiative.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use portcullis_mcp::header as names;
use tokio::time::sleep;

use crate::{
    bridge::{
        context::Context,
        endpoint::TokenRenewal,
        session_renewal,
        state::{
            server_stream_state::{MAX_UNSOLICITED_RENEWALS, State},
            session::Session,
        },
        transport::event_stream::{EventReader, ResumeAttempts, ResumePosition},
    },
    error::McpError,
    response::MediaType,
};

/// Opens the stream of the current session in a task, unless it is open or the server does not offer it.
pub(crate) fn start(context: &Arc<Context>) {
    let Some(session) = context.sessions.current().filter(|session| context.server_stream.begins(session)) else {
        return;
    };
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let mut generation = context.sessions.generation();
        let ended = tokio::select! {
            _ = generation.wait_for(|now| *now != session.generation) => return,
            ended = read_stream(&context, &session) => ended,
        };
        context.server_stream.ended(&session, ended);
        if ended == State::Lost {
            renew(&context, &session).await;
        }
    });
}

/// Opens another session for a client with subscriptions, which waits for notifications and sends no request itself.
/// This does not prompt the user for a sign-in. Without subscriptions, the client's next request opens the session.
async fn renew(context: &Arc<Context>, lost: &Session) {
    while !context.subscriptions.is_empty() {
        let unsolicited = context.server_stream.count_unsolicited_renewal();
        if unsolicited >= MAX_UNSOLICITED_RENEWALS {
            return;
        }
        sleep(ResumePosition::default().wait(unsolicited + 1)).await;
        let Err(error) = session_renewal::renew(context, lost, TokenRenewal::Disabled).await else { return };
        tracing::warn!(reason = error.code(), "the session is lost, and no other could be opened for now");
        if !matches!(error, McpError::Fetch(_) | McpError::Status { .. }) {
            return;
        }
    }
}

async fn read_stream(context: &Arc<Context>, session: &Session) -> State {
    match &session.connection {
        // The reader of the connection forwards its messages.
        Some(connection) => {
            connection.lost().await;
            State::Lost
        }
        None => listen(context, session).await,
    }
}

/// Reads the server's stream until it cannot be resumed. A stream that ends is requested again after its last event.
/// This does not prompt the user for a sign-in.
async fn listen(context: &Arc<Context>, session: &Session) -> State {
    let (mut position, mut attempts, mut was_open) = (ResumePosition::default(), ResumeAttempts::default(), false);
    loop {
        match open(context, session, &position).await {
            Ok(mut events) => {
                was_open = true;
                events.position = position;
                loop {
                    match events.next().await {
                        Ok(Some(messages)) => {
                            attempts.record(&mut events, &messages);
                            for message in messages {
                                if let Err(error) = context.forward(message, None).await {
                                    tracing::warn!(reason = error.code(), "the server sent an invalid message");
                                }
                            }
                        }
                        Ok(None) => break,
                        Err(error) => {
                            tracing::warn!(reason = error.code(), "{error}");
                            break;
                        }
                    }
                }
                position = events.position;
            }
            Err(Failure::Passing) => {}
            Err(Failure::Authorization) => return State::Stopped,
            Err(Failure::Refused(status)) => {
                // After a stream was open, these mean that the server does not know the session or the event.
                let is_of_session = matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST);
                if !was_open || !is_of_session || session.identifier.is_none() {
                    return State::NotOffered;
                }
                if !position.clear() {
                    return State::Lost;
                }
            }
        }
        sleep(attempts.next_delay(&position)).await;
    }
}

enum Failure {
    Passing,
    Authorization,
    Refused(StatusCode),
}

async fn open(context: &Arc<Context>, session: &Session, position: &ResumePosition) -> Result<EventReader, Failure> {
    // The identifier can have been replaced since.
    let now = context.sessions.current().filter(|now| now.generation == session.generation);
    let mut headers: HeaderMap = context.sessions.headers(now.as_ref());
    headers.extend(position.last_event().map(|event| (names::LAST_EVENT_ID, event)));
    match context.endpoint.send(context.endpoint.get(headers), TokenRenewal::Disabled).await {
        Ok(answer) if answer.status.is_success() && MediaType::of(&answer.headers) == MediaType::EventStream => {
            Ok(EventReader::new(context, answer.body))
        }
        Ok(answer) if answer.status.is_server_error() && answer.status != StatusCode::NOT_IMPLEMENTED => {
            Err(Failure::Passing)
        }
        Ok(answer) => {
            tracing::debug!(status = answer.status.as_u16(), "the server offers no stream for its own messages");
            Err(Failure::Refused(answer.status))
        }
        Err(McpError::Fetch(_)) => Err(Failure::Passing),
        Err(error) => {
            tracing::debug!(reason = error.code(), "the stream for the server's own messages cannot be opened for now");
            Err(Failure::Authorization)
        }
    }
}
