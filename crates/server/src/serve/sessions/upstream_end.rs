//! Ending of upstream sessions whose session has ended.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_session::{EndReason, Session, SessionObserver, SessionTarget};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::upstreams::{SessionUpstream, Upstreams};
use crate::{audit::Audit, metrics::Metrics};

/// The maximum number of upstream sessions that wait to be ended. Further ones are left to the upstream's own timeout. Another
/// replica can end all sessions of an issuer at once.
const MAX_QUEUED: usize = 16_384;

/// The maximum number of concurrent requests, so that a slow upstream does not delay all others.
const MAX_CONCURRENT: usize = 16;

/// How long the sessions that a new configuration ends wait for a place in the queue.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// Observes sessions: audits and counts them, and queues the end of their upstream sessions.
pub(crate) struct SessionEvents {
    upstream_ends: UpstreamEndQueue,
    audit: Option<Audit>,
    metrics: Option<Arc<Metrics>>,
}

/// The queue of upstream sessions to end, and the upstreams at which they end.
#[derive(Clone)]
pub(crate) struct UpstreamEndQueue {
    sender: mpsc::Sender<UpstreamSession>,
    upstreams: Arc<ArcSwap<Upstreams>>,
}

impl UpstreamEndQueue {
    /// Queues the end of a session at its upstream. Without a known upstream, nothing is sent.
    fn add_session(&self, session: &Session) {
        if let Some(session) = UpstreamSession::of(session, &self.upstreams.load()) {
            self.push(session);
        }
    }

    /// Queues the end of an upstream session.
    pub(crate) fn add(&self, upstream: SessionUpstream, backend: Box<[u8]>) {
        self.push(UpstreamSession { upstream, backend });
    }

    fn push(&self, session: UpstreamSession) {
        if self.sender.try_send(session).is_err() {
            tracing::warn!("too many sessions end at once; one is left to its upstream's timeout");
        }
    }

    /// Queues the end of many sessions at their upstreams, as far as the queue has capacity for them within 60 s.
    pub(crate) fn add_all(&self, sessions: &[Arc<Session>]) {
        let upstreams = self.upstreams.load();
        let sessions: Vec<_> = sessions.iter().filter_map(|session| UpstreamSession::of(session, &upstreams)).collect();
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
                tracing::warn!("too many sessions end at once; some are left to their upstream's timeout");
            }
        });
    }

    /// Replaces the upstreams of the configuration. The sessions of former ones still end there.
    pub(crate) fn set_upstreams(&self, current: HashMap<SessionTarget, SessionUpstream>) {
        self.upstreams.rcu(|upstreams| upstreams.followed_by(&current));
    }

    /// Removes the upstreams of former configurations, when no session can end there.
    pub(crate) fn forget_former_upstreams(&self) {
        self.upstreams.rcu(|upstreams| upstreams.without_former());
    }
}

/// A session that still exists at its upstream.
struct UpstreamSession {
    upstream: SessionUpstream,
    backend: Box<[u8]>,
}

impl UpstreamSession {
    /// Returns the session at its upstream. `None` if it has no session there, or the upstream is not known any more.
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
        Some(Self { upstream: upstream.clone(), backend: session.backend_id().into() })
    }

    fn end(self, requests: &mut JoinSet<()>) {
        let Self { upstream: SessionUpstream { header, mut client }, backend } = self;
        requests.spawn(async move { client.end(&header, &backend).await });
    }
}

impl SessionEvents {
    /// Returns the observer, and the task that ends sessions at the upstreams.
    pub(crate) fn new(audit: Option<Audit>, metrics: Option<Arc<Metrics>>) -> (Self, UpstreamEnder) {
        let (sender, queued) = mpsc::channel(MAX_QUEUED);
        let upstreams = Arc::<ArcSwap<Upstreams>>::default();
        let ender = UpstreamEnder { queued, upstreams: Arc::clone(&upstreams) };
        (Self { upstream_ends: UpstreamEndQueue { sender, upstreams }, audit, metrics }, ender)
    }

    pub(crate) fn upstream_ends(&self) -> &UpstreamEndQueue {
        &self.upstream_ends
    }
}

impl SessionObserver for SessionEvents {
    fn opened(&self, session: &Session) {
        if let Some(metrics) = &self.metrics {
            metrics.session_opened();
        }
        if let Some(audit) = &self.audit {
            audit.session_opened(session);
        }
    }

    fn adopted(&self, session: &Session) {
        tracing::info!(session = %session.log_hash(), "session continued");
    }

    fn released(&self, session: &Session) {
        tracing::debug!(session = %session.log_hash(), "session left to another process");
    }

    fn not_sealed(&self, session: &Session) {
        tracing::warn!(
            resource = session.resource().as_str(),
            "session identifiers of this upstream have more than {} bytes: its sessions end with this process",
            Session::MAX_BACKEND_ID
        );
    }

    fn ended(&self, session: &Session, reason: EndReason) {
        if let Some(metrics) = &self.metrics {
            metrics.session_ended(reason);
        }
        if let Some(audit) = &self.audit {
            audit.session_ended(session, reason);
        }
        let ends_with_many = matches!(
            reason,
            EndReason::Shutdown
                | EndReason::ResourceRemoved
                | EndReason::BackendRemoved
                | EndReason::IssuerRemoved
                | EndReason::Administrator
        );
        if ends_with_many {
            // There can be more of these than the queue can hold, and one log line is enough. The caller ends them at
            // the upstreams.
            tracing::debug!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
            return;
        }
        tracing::info!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
        // The upstream has already ended these: this or another process deleted them there, or the upstream did not
        // know them. Of the sessions of a scope, the other process has deleted only those that it knew.
        let upstream_is_unaware =
            !matches!(reason, EndReason::Deleted | EndReason::TransportClosed | EndReason::EndedElsewhere);
        if upstream_is_unaware {
            self.upstream_ends.add_session(session);
        }
    }
}

/// Ends the queued sessions at their upstreams.
pub(crate) struct UpstreamEnder {
    queued: mpsc::Receiver<UpstreamSession>,
    upstreams: Arc<ArcSwap<Upstreams>>,
}

impl UpstreamEnder {
    /// Ends queued sessions, several at a time. When `shutdown` yields the sessions that end with the program, ends the
    /// queued ones and these, and returns.
    pub(crate) async fn run(mut self, mut shutdown: oneshot::Receiver<Vec<Arc<Session>>>) {
        let mut requests = JoinSet::new();
        let last = loop {
            tokio::select! {
                Some(_) = requests.join_next() => {}
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
        for session in last.iter().filter_map(|session| UpstreamSession::of(session, &upstreams)) {
            wait_for_capacity(&mut requests).await;
            session.end(&mut requests);
        }
        while requests.join_next().await.is_some() {}
    }
}

async fn wait_for_capacity(requests: &mut JoinSet<()>) {
    while requests.len() >= MAX_CONCURRENT {
        requests.join_next().await;
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use portcullis_metadata::{ResourceUri, Scopes};
    use portcullis_session::{Owner, SessionKey, SessionSettings, SessionStore};
    use portcullis_testkit::ManualClock;

    use super::*;
    use crate::{demo, serve::sessions::upstreams::Upstream};

    fn end(reason: EndReason, backend: &[u8]) -> Option<Box<[u8]>> {
        let (events, mut ender) = SessionEvents::new(None, None);
        let settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
        let upstream_ends = events.upstream_ends().clone();
        let store = SessionStore::new(settings, Arc::new(ManualClock::new()), Arc::new(events));
        let resource: SessionTarget = ResourceUri::parse("http://127.0.0.1/mcp").unwrap().into();
        let upstream = SessionUpstream {
            header: HeaderName::from_static("mcp-session-id"),
            client: Upstream::Demo(demo::service().unwrap().into()),
        };
        upstream_ends.set_upstreams(HashMap::from([(resource.clone(), upstream)]));
        let reservation = store.reserve(&resource, Owner::Anonymous, &Scopes::empty()).unwrap();
        store.end(&reservation.open(backend.into(), None).unwrap(), reason);
        ender.queued.try_recv().ok().map(|session| session.backend)
    }

    /// E9: sessions that expire are ended at the upstream, and those that the upstream ended itself are not.
    #[test]
    fn sessions_that_the_upstream_still_has_are_queued() {
        assert_eq!(end(EndReason::Idle, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Lifetime, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Evicted, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::DeleteFailed, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Deleted, b"backend"), None);
        assert_eq!(end(EndReason::TransportClosed, b"backend"), None);
        assert_eq!(end(EndReason::EndedElsewhere, b"backend"), None);
        assert_eq!(end(EndReason::ScopeEndedElsewhere, b"backend").as_deref(), Some(&b"backend"[..]));
        assert_eq!(end(EndReason::Shutdown, b"backend"), None, "the shutdown ends all of them itself");
        assert_eq!(end(EndReason::ResourceRemoved, b"backend"), None, "the reload ends all of them itself");
        assert_eq!(end(EndReason::Idle, b""), None, "the upstream keeps no sessions");
    }
}
