use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use portcullis_mcp::header as names;
use tokio::sync::watch;

use super::sse_connection::SseConnection;
use crate::error_response::ErrorResponse;

/// The legacy session, and the handshake to reopen it.
pub(crate) struct Sessions {
    /// The header of the session identifier.
    header: HeaderName,
    state: Mutex<State>,
    /// Held while the session is reopened.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Counts sessions, for tasks that end with a session.
    generation: watch::Sender<u64>,
    /// Whether no further session can be opened.
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
    /// The number of the session, which later sessions do not have.
    pub(crate) generation: u64,
    /// `None` if the server has no sessions.
    pub(crate) identifier: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The connection to a server of 2024-11-05.
    pub(crate) connection: Option<Arc<SseConnection>>,
}

impl Sessions {
    /// Starts without a session.
    pub(crate) fn new(header: HeaderName) -> Self {
        let state = Mutex::default();
        let renewing = tokio::sync::Mutex::default();
        Self {
            header,
            state,
            renewing,
            generation: watch::channel(0).0,
            ended: watch::channel(false).0,
        }
    }

    /// The current session.
    pub(crate) fn current(&self) -> Option<Session> {
        self.state.lock().session.clone()
    }

    /// Changes when another session is opened, and when the last one ends.
    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Stores the parameters of the handshake that begins, and forgets the previous session.
    pub(crate) fn begin(&self, params: Option<&str>) {
        let mut state = self.state.lock();
        state.session = None;
        state.handshake = Some(params.unwrap_or("{}").to_owned());
    }

    /// The handshake parameters to reopen the session with.
    pub(crate) fn handshake(&self) -> Option<String> {
        self.state.lock().handshake.clone()
    }

    /// Stores the session of a successful handshake. A version that cannot be a header is not sent
    /// in the session.
    pub(crate) fn open(
        &self,
        identifier: Option<HeaderValue>,
        version: Option<&str>,
        connection: Option<Arc<SseConnection>>,
    ) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut state = self.state.lock();
        let mut generation = 0;
        self.generation.send_modify(|counted| {
            *counted += 1;
            generation = *counted;
        });
        state.session = Some(Session {
            generation,
            identifier,
            version,
            connection,
        });
    }

    /// Replaces the identifier of a session if a response in it has another one.
    pub(crate) fn update_identifier(&self, used: Option<&Session>, response: &HeaderMap) {
        let Some(identifier) = response.get(&self.header) else {
            return;
        };
        let mut state = self.state.lock();
        if let (Some(session), Some(used)) = (&mut state.session, used)
            && session.generation == used.generation
            && session.identifier.is_some()
        {
            session.identifier = Some(identifier.clone());
        }
    }

    /// The identifier in the response to a handshake.
    pub(crate) fn identifier(&self, response: &HeaderMap) -> Option<HeaderValue> {
        response.get(&self.header).cloned()
    }

    /// Waits until no further session can be opened.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as this value.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Removes the handshake, so that no further session is opened, and returns the session.
    pub(crate) fn end(&self) -> Option<Session> {
        self.ended.send_replace(true);
        let mut state = self.state.lock();
        state.handshake = None;
        self.generation.send_modify(|counted| *counted += 1);
        state.session.take()
    }

    /// The headers of a request in a session: its protocol version and its identifier. None without
    /// a session.
    pub(crate) fn headers(&self, session: Option<&Session>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(Session {
            identifier,
            version,
            ..
        }) = session
        {
            headers.extend(
                version
                    .clone()
                    .map(|version| (names::PROTOCOL_VERSION, version)),
            );
            headers.extend(
                identifier
                    .clone()
                    .map(|identifier| (self.header.clone(), identifier)),
            );
        }
        headers
    }
}

impl Session {
    /// Whether an error response to a message in this session means that the server does not know
    /// the session. A server without sessions cannot lose one.
    pub(crate) fn is_lost_by(&self, rejection: &ErrorResponse) -> bool {
        (self.identifier.is_some() || self.connection.is_some()) && rejection.is_unknown_session()
    }

    /// The negotiated protocol version.
    pub(crate) fn version(&self) -> Option<&HeaderValue> {
        self.version.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(names::SESSION, HeaderValue::from_static(text))])
    }

    fn sessions() -> Sessions {
        let sessions = Sessions::new(names::SESSION);
        sessions.begin(Some("{}"));
        sessions.open(
            Some(HeaderValue::from_static("s-1")),
            Some("2025-06-18"),
            None,
        );
        sessions
    }

    #[test]
    fn requests_in_a_session_name_it() {
        let sessions = sessions();
        assert!(sessions.headers(None).is_empty());
        let headers = sessions.headers(sessions.current().as_ref());
        assert_eq!(headers[names::SESSION], "s-1");
        assert_eq!(headers[names::PROTOCOL_VERSION], "2025-06-18");
    }

    #[test]
    fn a_response_replaces_the_identifier_of_its_own_session() {
        let sessions = sessions();
        let first = sessions.current();
        sessions.update_identifier(first.as_ref(), &identifier("s-2"));
        assert_eq!(sessions.current().unwrap().identifier.unwrap(), "s-2");
        sessions.update_identifier(None, &identifier("s-3"));
        sessions.update_identifier(first.as_ref(), &HeaderMap::new());
        assert_eq!(sessions.current().unwrap().identifier.unwrap(), "s-2");
        sessions.open(Some(HeaderValue::from_static("t-1")), None, None);
        sessions.update_identifier(first.as_ref(), &identifier("s-4"));
        assert_eq!(
            sessions.current().unwrap().identifier.unwrap(),
            "t-1",
            "the response is of an earlier session"
        );
    }

    #[test]
    fn a_server_without_sessions_gets_none() {
        let sessions = Sessions::new(names::SESSION);
        sessions.open(None, Some("not a\nheader"), None);
        sessions.update_identifier(sessions.current().as_ref(), &identifier("s-1"));
        assert!(sessions.headers(sessions.current().as_ref()).is_empty());
    }

    #[tokio::test]
    async fn an_end_is_final() {
        let sessions = sessions();
        let generation = sessions.generation();
        assert_eq!(sessions.end().unwrap().identifier.unwrap(), "s-1");
        sessions.ended().await;
        assert!(generation.has_changed().unwrap());
        assert!(sessions.handshake().is_none());
        assert!(sessions.end().is_none());
    }
}
