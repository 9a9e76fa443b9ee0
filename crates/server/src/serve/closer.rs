//! Sessions that end by themselves take the upstream's session with them.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::Empty;
use portcullis_gateway::HttpUpstream;
use portcullis_metadata::ResourceUri;
use portcullis_session::{EndReason, Session, SessionObserver};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tower_service::Service as _;

use crate::{audit::Audit, demo::DemoService};

/// Upstream sessions that wait to be ended; beyond it they are left to the upstream's own time-out.
const WAITING: usize = 1024;

/// Upstreams that are told of an ended session at the same moment: a slow one must not hold up all others.
const AT_ONCE: usize = 16;

/// Hears of sessions, writes them down, and has the upstream told of those that ended.
pub(super) struct Closer {
    leftovers: Leftovers,
    audit: Option<Audit>,
}

/// Upstream sessions that somebody has to end.
#[derive(Clone)]
pub(super) struct Leftovers(mpsc::Sender<Over>);

impl Leftovers {
    /// Has the upstream told that one of its sessions is over.
    pub(super) fn add(&self, resource: ResourceUri, backend: Box<[u8]>) {
        if self.0.try_send(Over { resource, backend }).is_err() {
            tracing::warn!("too many sessions end at once, one is left to its upstream");
        }
    }
}

/// A session that the upstream still holds.
pub(super) struct Over {
    resource: ResourceUri,
    backend: Box<[u8]>,
}

/// The way to the upstream of one resource, on the control runtime.
#[derive(Clone)]
pub(super) enum Upstream {
    Demo(Box<DemoService>),
    Http(HttpUpstream),
}

/// The upstreams by their resource, each with the header that names its sessions.
pub(super) type Upstreams = HashMap<ResourceUri, (HeaderName, Upstream)>;

impl Closer {
    pub(super) fn new(audit: Option<Audit>) -> (Self, mpsc::Receiver<Over>) {
        let (queue, over) = mpsc::channel(WAITING);
        (Self { leftovers: Leftovers(queue), audit }, over)
    }

    pub(super) fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }
}

impl SessionObserver for Closer {
    fn opened(&self, session: &Session) {
        if let Some(audit) = &self.audit {
            audit.session_opened(session);
        }
    }

    fn ended(&self, session: &Session, reason: EndReason) {
        if let Some(audit) = &self.audit {
            audit.session_ended(session, reason);
        }
        if reason == EndReason::Shutdown {
            // All sessions end at once, which is one line in the log, and more than the queue holds.
            tracing::debug!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
            return;
        }
        tracing::info!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
        // The upstream knows of the others: it was asked to delete them, or forgot them first.
        let by_itself = !matches!(reason, EndReason::Deleted | EndReason::TransportClosed);
        if by_itself && !session.backend_id().is_empty() {
            self.leftovers.add(session.resource().clone(), session.backend_id().into());
        }
    }
}

/// The other end of the queue.
pub(super) struct Closing {
    pub(super) over: mpsc::Receiver<Over>,
    pub(super) upstreams: Upstreams,
}

impl Closing {
    /// Tells upstreams, a few sessions at once. After `shutdown` has given the sessions that end with the program, it tells of
    /// those that wait and of these, and returns.
    pub(super) async fn run(mut self, mut shutdown: oneshot::Receiver<Vec<Arc<Session>>>) {
        let mut told = JoinSet::new();
        let last = loop {
            tokio::select! {
                Some(_) = told.join_next() => {}
                last = &mut shutdown => break last.unwrap_or_default(),
                Some(over) = self.over.recv(), if told.len() < AT_ONCE => self.tell(&mut told, over),
            }
        };
        self.over.close();
        while let Some(over) = self.over.recv().await {
            wait_for_turn(&mut told).await;
            self.tell(&mut told, over);
        }
        for session in last.iter().filter(|session| !session.backend_id().is_empty()) {
            wait_for_turn(&mut told).await;
            let over = Over { resource: session.resource().clone(), backend: session.backend_id().into() };
            self.tell(&mut told, over);
        }
        while told.join_next().await.is_some() {}
    }

    fn tell(&self, told: &mut JoinSet<()>, Over { resource, backend }: Over) {
        if let Some((header, upstream)) = self.upstreams.get(&resource) {
            let (header, mut upstream) = (header.clone(), upstream.clone());
            told.spawn(async move { upstream.end(&header, &backend).await });
        }
    }
}

async fn wait_for_turn(told: &mut JoinSet<()>) {
    while told.len() >= AT_ONCE {
        told.join_next().await;
    }
}

impl Upstream {
    async fn end(&mut self, header: &HeaderName, backend: &[u8]) {
        let status = match self {
            Self::Http(upstream) => upstream.end_session(header.clone(), backend).await,
            Self::Demo(service) => {
                let mut request = Request::new(Empty::<Bytes>::new());
                *request.method_mut() = Method::DELETE;
                let Ok(backend) = HeaderValue::from_bytes(backend) else { return };
                request.headers_mut().insert(header, backend);
                match service.call(request).await {
                    Ok(response) => response.status(),
                    Err(infallible) => match infallible {},
                }
            }
        };
        tracing::debug!(status = status.as_u16(), "the upstream was told that a session is over");
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use portcullis_metadata::{Clock, Scopes, UnixTime};
    use portcullis_session::{Owner, SessionKey, SessionSettings, SessionStore};

    use super::*;

    struct Later;

    impl Clock for Later {
        fn now(&self) -> UnixTime {
            UnixTime::from_secs(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn end(reason: EndReason, backend: &[u8]) -> Option<Box<[u8]>> {
        let (closer, mut over) = Closer::new(None);
        let settings = SessionSettings::new(SessionKey::new(0, [7; 16]));
        let store = SessionStore::new(settings, Arc::new(Later), Arc::new(closer));
        let resource = ResourceUri::parse("http://127.0.0.1/mcp").unwrap();
        let reservation = store.reserve(&resource, Owner::Anonymous, &Scopes::empty()).unwrap();
        store.end(&reservation.open(backend.into(), None).unwrap(), reason);
        over.try_recv().ok().map(|over| over.backend)
    }

    /// E9: the upstream is told of sessions that ended by time, and not of those that it ended itself.
    #[test]
    fn upstreams_hear_of_what_they_do_not_know() {
        assert_eq!(end(EndReason::Idle, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Lifetime, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Evicted, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::DeleteFailed, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Deleted, b"backend"), None);
        assert_eq!(end(EndReason::TransportClosed, b"backend"), None);
        assert_eq!(end(EndReason::Shutdown, b"backend"), None, "the shutdown tells of all of them itself");
        assert_eq!(end(EndReason::Idle, b""), None, "the upstream keeps no sessions");
    }
}
