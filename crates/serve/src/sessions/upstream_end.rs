use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_session::{Session, SessionTarget};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::upstreams::{SessionUpstream, Upstreams};

/// The maximum number of upstream sessions that wait to be ended. Further ones are left to the
/// upstream's own timeout. Another replica can end all sessions of an issuer at once.
const MAX_QUEUED: usize = 16_384;

/// The maximum number of concurrent requests, so that a slow upstream does not delay all others.
const MAX_CONCURRENT: usize = 16;

/// How long the sessions that a new configuration ends wait for a place in the queue.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// The queue of upstream sessions to end, and the upstreams at which they end.
#[derive(Clone)]
pub(crate) struct UpstreamEndQueue {
    sender: mpsc::Sender<UpstreamSession>,
    upstreams: Arc<ArcSwap<Upstreams>>,
}

impl UpstreamEndQueue {
    /// Returns an empty queue, and the task that ends what is queued.
    pub(crate) fn new() -> (Self, UpstreamEnder) {
        let (sender, queued) = mpsc::channel(MAX_QUEUED);
        let upstreams = Arc::<ArcSwap<Upstreams>>::default();
        (
            Self {
                sender,
                upstreams: Arc::clone(&upstreams),
            },
            UpstreamEnder { queued, upstreams },
        )
    }

    /// Queues the end of a session at its upstream. Without a known upstream, nothing is sent.
    pub(super) fn add_session(&self, session: &Session) {
        if let Some(session) = UpstreamSession::of(session, &self.upstreams.load()) {
            self.push(session);
        }
    }

    pub(crate) fn add(&self, upstream: SessionUpstream, backend: Box<[u8]>) {
        self.push(UpstreamSession { upstream, backend });
    }

    fn push(&self, session: UpstreamSession) {
        if self.sender.try_send(session).is_err() {
            tracing::warn!("too many sessions end at once; one is left to its upstream's timeout");
        }
    }

    /// Queues the end of many sessions at their upstreams, as far as the queue has capacity for
    /// them within 60 s.
    pub(crate) fn add_all(&self, sessions: &[Arc<Session>]) {
        let upstreams = self.upstreams.load();
        let sessions: Vec<_> = sessions
            .iter()
            .filter_map(|session| UpstreamSession::of(session, &upstreams))
            .collect();
        if sessions.is_empty() {
            return;
        }
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let send_all = async {
                for session in sessions {
                    // It fails only when the process is ending.
                    let _ = sender.send(session).await;
                }
            };
            if timeout(QUEUE_TIMEOUT, send_all).await.is_err() {
                tracing::warn!(
                    "too many sessions end at once; some are left to their upstream's timeout"
                );
            }
        });
    }

    /// Replaces the upstreams of the configuration. The sessions of former ones still end there.
    pub(crate) fn set_upstreams(&self, current: HashMap<SessionTarget, SessionUpstream>) {
        self.upstreams
            .rcu(|upstreams| upstreams.followed_by(&current));
    }

    /// Removes the upstreams of former configurations, when no session can end there.
    pub(crate) fn forget_former_upstreams(&self) {
        self.upstreams.rcu(|upstreams| upstreams.without_former());
    }
}

/// A session that still exists at its upstream.
struct UpstreamSession {
    upstream: SessionUpstream,
    /// The upstream's identifier of the session.
    backend: Box<[u8]>,
}

impl UpstreamSession {
    /// Returns the session at its upstream. `None` if it has no session there, or the upstream is
    /// not known any more.
    fn of(session: &Session, upstreams: &Upstreams) -> Option<Self> {
        if session.backend_id().is_empty() {
            return None;
        }
        let Some(upstream) = upstreams.get(session.target()) else {
            tracing::debug!(
                session = %session.log_hash(),
                "a session is left to its upstream's timeout: the upstream is not configured any more"
            );
            return None;
        };
        Some(Self {
            upstream: upstream.clone(),
            backend: session.backend_id().into(),
        })
    }

    /// Sends the request that ends the session.
    fn end(self, requests: &mut JoinSet<()>) {
        requests.spawn(async move { self.upstream.end(&self.backend).await });
    }
}

/// Ends the queued sessions at their upstreams.
pub(crate) struct UpstreamEnder {
    queued: mpsc::Receiver<UpstreamSession>,
    upstreams: Arc<ArcSwap<Upstreams>>,
}

impl UpstreamEnder {
    /// Ends queued sessions, several at a time. When `shutdown` yields the sessions that end with
    /// the program, ends the queued ones and these, and returns.
    pub(crate) async fn run(mut self, mut shutdown: oneshot::Receiver<Vec<Arc<Session>>>) {
        let mut requests = JoinSet::new();
        let last = loop {
            tokio::select! {
                Some(_) = requests.join_next() => {}
                // Without a sender, the runtime is ending.
                last = &mut shutdown => break last.unwrap_or_default(),
                Some(session) = self.queued.recv(), if requests.len() < MAX_CONCURRENT => session.end(&mut requests),
            }
        };
        self.queued.close();
        while let Some(session) = self.queued.recv().await {
            wait_for_capacity(&mut requests).await;
            session.end(&mut requests);
        }
        let upstreams = self.upstreams.load_full();
        for session in last
            .iter()
            .filter_map(|session| UpstreamSession::of(session, &upstreams))
        {
            wait_for_capacity(&mut requests).await;
            session.end(&mut requests);
        }
        while requests.join_next().await.is_some() {}
    }
}

/// Waits until another request may be sent.
async fn wait_for_capacity(requests: &mut JoinSet<()>) {
    while requests.len() >= MAX_CONCURRENT {
        requests.join_next().await;
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::{ResourceUri, Scopes};
    use portcullis_session::{EndReason, Owner, SessionKey, SessionSettings, SessionStore};
    use portcullis_testkit::ManualClock;

    use super::*;
    use crate::sessions::events::SessionEvents;

    /// Ends a session with this identifier at the upstream. Returns the identifier that is queued.
    fn queued(backend: &[u8], is_known: bool, reason: EndReason) -> Option<Box<[u8]>> {
        let (upstream_ends, mut ender) = UpstreamEndQueue::new();
        let events = SessionEvents {
            upstream_ends: upstream_ends.clone(),
            audit: None,
            metrics: None,
        };
        let settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
        let store = SessionStore::builder(settings)
            .clock(Arc::new(ManualClock::new()))
            .observer(Arc::new(events))
            .build();
        let target: SessionTarget = ResourceUri::parse("http://127.0.0.1/mcp").unwrap().into();
        if is_known {
            let upstream = SessionUpstream::for_tests("mcp-session-id");
            upstream_ends.set_upstreams(HashMap::from([(target.clone(), upstream)]));
        }
        let reservation = store
            .reserve(&target, Owner::Anonymous, &Scopes::empty())
            .unwrap();
        store.end(&reservation.open(backend.into(), None).unwrap(), reason);
        ender.queued.try_recv().ok().map(|session| session.backend)
    }

    /// E9: a session is ended at its upstream, if that is known and has sessions.
    #[test]
    fn sessions_of_known_upstreams_are_queued() {
        assert_eq!(
            queued(b"backend", true, EndReason::Idle).as_deref(),
            Some(&b"backend"[..])
        );
        assert_eq!(
            queued(b"", true, EndReason::Idle),
            None,
            "the upstream keeps no sessions"
        );
        assert_eq!(
            queued(b"backend", false, EndReason::Idle),
            None,
            "the upstream is not configured any more"
        );
        assert_eq!(
            queued(b"backend", true, EndReason::Deleted),
            None,
            "the client's DELETE went to the upstream"
        );
        assert_eq!(
            queued(b"backend", true, EndReason::Shutdown),
            None,
            "the shutdown ends the last sessions itself"
        );
    }
}
