use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, StatusCode};
use portcullis_mcp::header as names;
use tokio::time::sleep;

use super::{
    hub::Hub,
    session::Session,
    stream::{Events, Position},
};
use crate::{McpError, mcp::response::Content};

/// Whether the stream is open on which a legacy server sends messages of its own accord.
#[derive(Default)]
pub(super) struct Listening(Mutex<Option<(u64, State)>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It ended for a reason that may pass: a token that was refused.
    Stopped,
    /// The server has none.
    NotOffered,
}

/// Opens the stream of the present session, where it is not open and the server has not said that it has none.
pub(super) fn ensure(hub: &Arc<Hub>) {
    let Some(session) = hub.sessions.current().filter(|session| session.link.is_none()) else { return };
    let mut state = hub.listening.0.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*state, Some((generation, now)) if generation == session.generation && now != State::Stopped) {
        return;
    }
    *state = Some((session.generation, State::Open));
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        let mut generation = hub.sessions.generation();
        let ended = tokio::select! {
            _ = generation.wait_for(|now| *now != session.generation) => return,
            ended = listen(&hub, &session) => ended,
        };
        let mut state = hub.listening.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, Some((generation, _)) if generation == session.generation) {
            *state = Some((session.generation, ended));
        }
    });
}

/// Listens for as long as there is something to listen to. A stream that ends is asked for again, behind the last event
/// that came; nobody is asked for a token for that.
async fn listen(hub: &Arc<Hub>, session: &Session) -> State {
    let (mut position, mut fruitless) = (Position::default(), 0_u32);
    loop {
        match open(hub, session, &position).await {
            Ok(mut events) => {
                events.position = position;
                loop {
                    match events.next().await {
                        Ok(Some(messages)) => {
                            if std::mem::take(&mut events.heard) {
                                fruitless = 0;
                            }
                            for message in messages {
                                if let Err(error) = hub.pass(message, None).await {
                                    tracing::warn!(reason = error.code(), "the server sent what is no message");
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
            Err(Failure::Lasting(state)) => return state,
            Err(Failure::Passing) => {}
        }
        fruitless = fruitless.saturating_add(1);
        sleep(position.wait(fruitless)).await;
    }
}

enum Failure {
    Passing,
    Lasting(State),
}

async fn open(hub: &Arc<Hub>, session: &Session, position: &Position) -> Result<Events, Failure> {
    // The identifier may have been replaced since.
    let now = hub.sessions.current().filter(|now| now.generation == session.generation);
    let mut headers: HeaderMap = hub.sessions.headers(now.as_ref());
    headers.extend(position.last_event().map(|event| (names::LAST_EVENT_ID, event)));
    match hub.wire.send_quietly(hub.wire.get(headers)).await {
        Ok(answer) if answer.status.is_success() && Content::of(&answer.headers) == Content::Stream => {
            Ok(Events::new(answer.body, hub.settings.max_message))
        }
        Ok(answer) if answer.status.is_server_error() && answer.status != StatusCode::NOT_IMPLEMENTED => {
            Err(Failure::Passing)
        }
        Ok(answer) => {
            tracing::debug!(status = answer.status.as_u16(), "the server sends nothing of its own accord");
            Err(Failure::Lasting(State::NotOffered))
        }
        Err(McpError::Fetch(_)) => Err(Failure::Passing),
        Err(error) => {
            tracing::debug!(reason = error.code(), "messages of the server's own accord are not heard for now");
            Err(Failure::Lasting(State::Stopped))
        }
    }
}
