//! [`Sessions`]: the session of the revisions with sessions, and the data to reopen it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header as names;
use tokio::sync::watch;

use crate::bridge::{endpoint::ErrorResponse, state::sse_connection::SseConnection};

/// The legacy session, and the handshake to reopen it.
pub(crate) struct Sessions {
    header: HeaderName,
    state: Mutex<State>,
    /// Held while the session is reopened.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Counts sessions, for tasks that end with a session.
    generation: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    /// The parameters of the client's `initialize`.
    handshake: Option<String>,
}

/// The current session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) generation: u64,
    /// None if the server has no sessions.
    pub(crate) identifier: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The connection of a server of 2024-11-05.
    pub(crate) connection: Option<Arc<SseConnection>>,
}

impl Sessions {
    pub(crate) fn new(header: HeaderName) -> Self {
        let (state, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { header, state, renewing, generation: watch::channel(0).0, ended: watch::channel(false).0 }
    }

    pub(crate) fn current(&self) -> Option<Session> {
        self.state().session.clone()
    }

    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Stores the handshake that begins, and forgets the previous session.
    pub(crate) fn begin(&self, params: Option<&str>) {
        let mut state = self.state();
        state.session = None;
        state.handshake = Some(params.unwrap_or("{}").to_owned());
    }

    /// The handshake parameters to reopen the session with.
    pub(crate) fn handshake(&self) -> Option<String> {
        self.state().handshake.clone()
    }

    /// Stores the session of a successful handshake.
    pub(crate) fn open(
        &self,
        identifier: Option<HeaderValue>,
        version: Option<&str>,
        connection: Option<Arc<SseConnection>>,
    ) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut state = self.state();
        let mut generation = 0;
        self.generation.send_modify(|counted| {
            *counted += 1;
            generation = *counted;
        });
        state.session = Some(Session { generation, identifier, version, connection });
    }

    /// Replaces the identifier of a session if a response in it has another one.
    pub(crate) fn update_identifier(&self, asked_in: Option<&Session>, answer: &HeaderMap) {
        let Some(identifier) = answer.get(&self.header) else { return };
        let mut state = self.state();
        if let (Some(session), Some(asked_in)) = (&mut state.session, asked_in)
            && session.generation == asked_in.generation
            && session.identifier.is_some()
        {
            session.identifier = Some(identifier.clone());
        }
    }

    /// The identifier in the response to a handshake.
    pub(crate) fn identifier(&self, answer: &HeaderMap) -> Option<HeaderValue> {
        answer.get(&self.header).cloned()
    }

    /// Waits until no further session can be opened.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as this value.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Removes and returns the session and its handshake.
    pub(crate) fn end(&self) -> Option<Session> {
        self.ended.send_replace(true);
        let mut state = self.state();
        state.handshake = None;
        self.generation.send_modify(|counted| *counted += 1);
        state.session.take()
    }

    /// The headers of a request in a session.
    pub(crate) fn headers(&self, session: Option<&Session>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(Session { identifier, version, .. }) = session {
            headers.extend(version.clone().map(|version| (names::PROTOCOL_VERSION, version)));
            headers.extend(identifier.clone().map(|identifier| (self.header.clone(), identifier)));
        }
        headers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Whether an error response means that the server does not know the session.
    pub(crate) fn is_refused_by(&self, refusal: &ErrorResponse) -> bool {
        (self.identifier.is_some() || self.connection.is_some()) && refusal.is_unknown_session()
    }

    /// The negotiated protocol version.
    pub(crate) fn version(&self) -> Option<&HeaderValue> {
        self.version.as_ref()
    }
}
