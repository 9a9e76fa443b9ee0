use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header as names;
use tokio::sync::watch;

use super::{sse::Link, wire::Refusal};

/// The legacy session, and what it takes to open it once more.
pub(super) struct Sessions {
    header: HeaderName,
    state: Mutex<State>,
    /// Held by the one who opens the session once more.
    pub(super) renewing: tokio::sync::Mutex<()>,
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
pub(super) struct Session {
    pub(super) generation: u64,
    /// Absent when the server keeps no sessions.
    pub(super) identifier: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The connection of a server of 2024-11-05.
    pub(super) link: Option<Arc<Link>>,
}

impl Sessions {
    pub(super) fn new(header: HeaderName) -> Self {
        let (state, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { header, state, renewing, generation: watch::channel(0).0, ended: watch::channel(false).0 }
    }

    pub(super) fn current(&self) -> Option<Session> {
        self.state().session.clone()
    }

    pub(super) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Takes note of a handshake that begins. Whatever session there was is forgotten.
    pub(super) fn begin(&self, params: Option<&str>) {
        let mut state = self.state();
        state.session = None;
        state.handshake = Some(params.unwrap_or("{}").to_owned());
    }

    /// The parameters to open the session with once more.
    pub(super) fn handshake(&self) -> Option<String> {
        self.state().handshake.clone()
    }

    /// A handshake has succeeded.
    pub(super) fn open(&self, identifier: Option<HeaderValue>, version: Option<&str>, link: Option<Arc<Link>>) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut state = self.state();
        let mut generation = 0;
        self.generation.send_modify(|counted| {
            *counted += 1;
            generation = *counted;
        });
        state.session = Some(Session { generation, identifier, version, link });
    }

    /// An answer may carry a new identifier for the session that it was asked in.
    pub(super) fn learn(&self, asked_in: Option<&Session>, answer: &HeaderMap) {
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
    pub(super) fn identifier(&self, answer: &HeaderMap) -> Option<HeaderValue> {
        answer.get(&self.header).cloned()
    }

    /// Waits until there is going to be no session any more.
    pub(super) async fn ended(&self) {
        // The sender lives as long as this value.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Forgets the session and how to open it, and gives it back.
    pub(super) fn end(&self) -> Option<Session> {
        self.ended.send_replace(true);
        let mut state = self.state();
        state.handshake = None;
        self.generation.send_modify(|counted| *counted += 1);
        state.session.take()
    }

    /// The headers of a request in a session.
    pub(super) fn headers(&self, session: Option<&Session>) -> HeaderMap {
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
    pub(super) fn is_refused_by(&self, refusal: &Refusal) -> bool {
        (self.identifier.is_some() || self.link.is_some()) && refusal.is_of_session()
    }

    /// The revision that was agreed on.
    pub(super) fn version(&self) -> Option<&HeaderValue> {
        self.version.as_ref()
    }
}
