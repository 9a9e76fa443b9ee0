//! The stream of messages that the server sends on its own initiative.

use std::sync::Arc;

use http::StatusCode;
use portcullis_mcp::header as names;
use tokio::time::sleep;

use crate::{
    context::Context,
    endpoint::TokenRenewal,
    session_renewal,
    state::{
        server_stream_state::{MAX_UNSOLICITED_RENEWALS, StreamEnd},
        session::Session,
    },
    transport::event_stream::EventReader,
};
use portcullis_mcp_client::{
    McpError, RetryAfter,
    transport::{ResumeAttempts, ResumePosition, backoff, is_event_stream, is_temporary},
};

/// Opens the stream of the current session in a task, unless it is open or the server does not
/// offer it.
pub(crate) fn start(context: &Arc<Context>) {
    let Some(session) = context
        .sessions
        .current()
        .filter(|session| context.server_stream.begin(session))
    else {
        return;
    };
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let mut generation = context.sessions.generation();
        let end = tokio::select! {
            _ = generation.wait_for(|current| *current != session.generation) => return,
            end = read_stream(&context, &session) => end,
        };
        context.server_stream.end(&session, end);
        if end == StreamEnd::SessionLost {
            renew(&context, &session).await;
        }
    });
}

/// Opens another session for a client with subscriptions, which waits for notifications and sends
/// no request itself. This does not prompt the user for a sign-in. Without subscriptions, the
/// client's next request opens the session.
async fn renew(context: &Arc<Context>, lost: &Session) {
    while !context.subscriptions.is_empty() {
        let renewals = context.server_stream.count_unsolicited_renewal();
        if renewals >= MAX_UNSOLICITED_RENEWALS {
            return;
        }
        sleep(backoff(renewals + 1)).await;
        let Err(error) = session_renewal::renew(context, lost, TokenRenewal::Disabled).await else {
            return;
        };
        tracing::warn!(
            reason = error.code(),
            "the session is lost, and no other could be opened for now"
        );
        if !error.is_network_failure() && !matches!(error, McpError::Status { .. }) {
            return;
        }
    }
}

/// Reads the server's messages in a session until there can be no more.
async fn read_stream(context: &Arc<Context>, session: &Session) -> StreamEnd {
    match &session.connection {
        // The reader of the connection forwards its messages.
        Some(connection) => {
            connection.lost().await;
            StreamEnd::SessionLost
        }
        None => listen(context, session).await,
    }
}

/// Reads the server's stream until it cannot be resumed. A stream that ends is requested again
/// after its last event, and not before the time that a busy server sets. This does not prompt the
/// user for a sign-in.
async fn listen(context: &Arc<Context>, session: &Session) -> StreamEnd {
    let mut position = ResumePosition::default();
    let mut attempts = ResumeAttempts::default();
    let mut was_open = false;
    loop {
        let mut retry_after = RetryAfter::default();
        match open(context, session, &position).await {
            Ok(mut events) => {
                was_open = true;
                events.position = position;
                forward_events(context, &mut events, &mut attempts).await;
                position = events.position;
            }
            Err(OpenFailure::Temporary(wanted)) => retry_after = wanted,
            Err(OpenFailure::Unauthorized) => return StreamEnd::TokenRejected,
            Err(OpenFailure::Rejected(status)) => {
                // After a stream was open, these mean that the server does not know the session or
                // the event.
                let is_of_session =
                    matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST);
                if !was_open || !is_of_session || session.identifier.is_none() {
                    return StreamEnd::NotOffered;
                }
                if !position.forget_event() {
                    return StreamEnd::SessionLost;
                }
            }
        }
        sleep(
            attempts
                .next_delay(&position)
                .max(retry_after.delay().unwrap_or_default()),
        )
        .await;
    }
}

/// Forwards the messages of a stream to its end. An invalid message is dropped; events that cannot
/// be decoded end the stream.
async fn forward_events(
    context: &Context,
    events: &mut EventReader,
    attempts: &mut ResumeAttempts,
) {
    loop {
        match events.next().await {
            Ok(Some(batch)) => {
                if batch.has_event {
                    attempts.record(batch.messages.len());
                }
                for message in batch.messages {
                    if let Err(error) = context.forward(message, None).await {
                        tracing::warn!(reason = error.code(), "the server sent an invalid message");
                    }
                }
            }
            Ok(None) => return,
            Err(error) => return tracing::warn!(reason = error.code(), "{error}"),
        }
    }
}

/// Why the stream was not opened.
enum OpenFailure {
    /// The server could not be reached, has failed, or is busy. It may have sent `Retry-After`.
    Temporary(RetryAfter),
    /// No token could be obtained without the user.
    Unauthorized,
    /// The server responded with this status, or with a body that is not an event stream.
    Rejected(StatusCode),
}

/// Requests the stream, after the last event of an earlier one.
async fn open(
    context: &Arc<Context>,
    session: &Session,
    position: &ResumePosition,
) -> Result<EventReader, OpenFailure> {
    // The identifier can have been replaced since.
    let current = context
        .sessions
        .current()
        .filter(|current| current.generation == session.generation);
    let mut headers = context.sessions.headers(current.as_ref());
    headers.extend(
        position
            .last_event_id()
            .map(|event| (names::LAST_EVENT_ID, event)),
    );
    match context
        .endpoint
        .send(context.endpoint.get(headers), TokenRenewal::Disabled)
        .await
    {
        Ok(response) if is_event_stream(&response) => Ok(EventReader::new(context, response.body)),
        Ok(response)
            if is_temporary(response.status) && response.status != StatusCode::NOT_IMPLEMENTED =>
        {
            Err(OpenFailure::Temporary(RetryAfter::of(&response.headers)))
        }
        Ok(response) => {
            tracing::debug!(
                status = response.status.as_u16(),
                "the server offers no stream for its own messages"
            );
            Err(OpenFailure::Rejected(response.status))
        }
        Err(error) if error.is_network_failure() => {
            Err(OpenFailure::Temporary(RetryAfter::default()))
        }
        Err(error) => {
            tracing::debug!(
                reason = error.code(),
                "the stream for the server's own messages cannot be opened for now"
            );
            Err(OpenFailure::Unauthorized)
        }
    }
}
