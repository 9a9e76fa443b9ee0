use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use http::{HeaderMap, StatusCode};
use portcullis_mcp::header as names;
use tokio::time::sleep;

use super::{
    hub::Hub,
    renewal,
    session::Session,
    stream::{Events, Position, Tries},
    wire::Refused,
};
use crate::{McpError, mcp::response::Content};

/// How the server's messages of its own accord are heard in a legacy session.
#[derive(Default)]
pub(super) struct Listening {
    state: Mutex<Option<(u64, State)>>,
    /// How often in a row a session was to be opened although the client did not ask anything.
    unasked: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It ended for a reason that may pass: a token that was refused.
    Stopped,
    /// The server has none.
    NotOffered,
    /// The server does not know the session any more.
    Lost,
}

/// How often a session is opened for a client that does not ask anything, one time after the other.
const MAX_UNASKED: u32 = 8;

impl Listening {
    /// The client asks, and gets answers.
    pub(super) fn is_wanted(&self) {
        self.unasked.store(0, Ordering::Relaxed);
    }

    /// Takes note of how it is in a session, where that is not known. False when it is.
    fn begins(&self, session: &Session) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stands =
            matches!(*state, Some((generation, now)) if generation == session.generation && now != State::Stopped);
        if !stands {
            *state = Some((session.generation, State::Open));
        }
        !stands
    }

    fn ended(&self, session: &Session, how: State) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, Some((generation, _)) if generation == session.generation) {
            *state = Some((session.generation, how));
        }
    }
}

/// Listens in the present session, where nobody does and the server has not said that it is no use.
pub(super) fn ensure(hub: &Arc<Hub>) {
    let Some(session) = hub.sessions.current().filter(|session| hub.listening.begins(session)) else { return };
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        let mut generation = hub.sessions.generation();
        let ended = tokio::select! {
            _ = generation.wait_for(|now| *now != session.generation) => return,
            ended = heard(&hub, &session) => ended,
        };
        hub.listening.ended(&session, ended);
        if ended == State::Lost {
            renew(&hub, &session).await;
        }
    });
}

/// A client that has subscribed to something waits, and does not ask: another session is opened for it. Nobody is asked
/// for a token for that. Without subscriptions the next request does it.
async fn renew(hub: &Arc<Hub>, lost: &Session) {
    while !hub.kept.is_empty() {
        let unasked = hub.listening.unasked.fetch_add(1, Ordering::Relaxed);
        if unasked >= MAX_UNASKED {
            return;
        }
        sleep(Position::default().wait(unasked + 1)).await;
        let Err(error) = renewal::renew(hub, lost, Refused::Stands).await else { return };
        tracing::warn!(reason = error.code(), "the session is gone, and no other could be opened for now");
        if !matches!(error, McpError::Fetch(_) | McpError::Status { .. }) {
            return;
        }
    }
}

async fn heard(hub: &Arc<Hub>, session: &Session) -> State {
    match &session.link {
        // What comes on it is passed on by its reader.
        Some(link) => {
            link.lost().await;
            State::Lost
        }
        None => listen(hub, session).await,
    }
}

/// Listens for as long as there is something to listen to. A stream that ends is asked for again, behind the last event
/// that came; nobody is asked for a token for that.
async fn listen(hub: &Arc<Hub>, session: &Session) -> State {
    let (mut position, mut tries, mut was_open) = (Position::default(), Tries::default(), false);
    loop {
        match open(hub, session, &position).await {
            Ok(mut events) => {
                was_open = true;
                events.position = position;
                loop {
                    match events.next().await {
                        Ok(Some(messages)) => {
                            tries.brought(&mut events, &messages);
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
            Err(Failure::Passing) => {}
            Err(Failure::Authorization) => return State::Stopped,
            Err(Failure::Refused(status)) => {
                // Where there has been a stream, this says that the server does not know the session, or the event.
                let is_of_session = matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST);
                if !was_open || !is_of_session || session.identifier.is_none() {
                    return State::NotOffered;
                }
                if !position.begin_anew() {
                    return State::Lost;
                }
            }
        }
        sleep(tries.again(&position)).await;
    }
}

enum Failure {
    Passing,
    Authorization,
    Refused(StatusCode),
}

async fn open(hub: &Arc<Hub>, session: &Session, position: &Position) -> Result<Events, Failure> {
    // The identifier may have been replaced since.
    let now = hub.sessions.current().filter(|now| now.generation == session.generation);
    let mut headers: HeaderMap = hub.sessions.headers(now.as_ref());
    headers.extend(position.last_event().map(|event| (names::LAST_EVENT_ID, event)));
    match hub.wire.send(hub.wire.get(headers), Refused::Stands).await {
        Ok(answer) if answer.status.is_success() && Content::of(&answer.headers) == Content::Stream => {
            Ok(Events::new(answer.body, hub.settings.max_message))
        }
        Ok(answer) if answer.status.is_server_error() && answer.status != StatusCode::NOT_IMPLEMENTED => {
            Err(Failure::Passing)
        }
        Ok(answer) => {
            tracing::debug!(status = answer.status.as_u16(), "the server sends nothing of its own accord");
            Err(Failure::Refused(answer.status))
        }
        Err(McpError::Fetch(_)) => Err(Failure::Passing),
        Err(error) => {
            tracing::debug!(reason = error.code(), "messages of the server's own accord are not heard for now");
            Err(Failure::Authorization)
        }
    }
}
