//! [`Sessions`]: the session of the revisions with sessions, and the data to reopen it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header as names;
use tokio::sync::watch;

use crate::bridge::{endpoint::ErrorResponse, state::sse_connection::SseConnection};

/// The legacy session, and what it takes to open it once more.
pub(crate) struct Sessions {
    header: HeaderName,
    state: Mutex<State>,
    /// Held by the one who opens the session once more.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Counts sessions; told to those who listen for as long as a session lives.
    generation: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    /// The parameters of the client's `initialize`.
    handshake: Option<String>,
}

/// A session as it is now.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) generation: u64,
    /// Absent when the server keeps no sessions.
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

    /// Takes note of a handshake that begins. Whatever session there was is forgotten.
    pub(crate) fn begin(&self, params: Option<&str>) {
        let mut state = self.state();
        state.session = None;
        state.handshake = Some(params.unwrap_or("{}").to_owned());
    }

    /// The parameters to open the session with once more.
    pub(crate) fn handshake(&self) -> Option<String> {
        self.state().handshake.clone()
    }

    /// A handshake has succeeded.
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

    /// An answer may carry a new identifier for the session that it was asked in.
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

    /// The identifier that an answer gives a session that is being opened.
    pub(crate) fn identifier(&self, answer: &HeaderMap) -> Option<HeaderValue> {
        answer.get(&self.header).cloned()
    }

    /// Waits until there is going to be no session any more.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as this value.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Forgets the session and how to open it, and gives it back.
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
    /// Whether a refusal says that the server does not know it (any more).
    pub(crate) fn is_refused_by(&self, refusal: &ErrorResponse) -> bool {
        (self.identifier.is_some() || self.connection.is_some()) && refusal.is_unknown_session()
    }

    /// The revision that was agreed on.
    pub(crate) fn version(&self) -> Option<&HeaderValue> {
        self.version.as_ref()
    }
}
