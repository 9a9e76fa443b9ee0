//! Ending of upstream sessions whose session has ended.

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

/// The maximum number of upstream sessions that wait to be ended. Further ones are left to the upstream's own timeout.
const MAX_QUEUED: usize = 1024;

/// The maximum number of concurrent requests, so that a slow upstream does not delay all others.
const MAX_CONCURRENT: usize = 16;

/// Observes sessions: audits them, and queues the end of their upstream sessions.
pub(crate) struct SessionEvents {
    upstream_ends: UpstreamEndQueue,
    audit: Option<Audit>,
}

/// The queue of upstream sessions to end.
#[derive(Clone)]
pub(crate) struct UpstreamEndQueue(mpsc::Sender<UpstreamSession>);

impl UpstreamEndQueue {
    /// Queues the end of an upstream session.
    pub(crate) fn add(&self, resource: ResourceUri, backend: Box<[u8]>) {
        if self.0.try_send(UpstreamSession { resource, backend }).is_err() {
            tracing::warn!("too many sessions end at once; one is left to its upstream's timeout");
        }
    }
}

/// A session that still exists at its upstream.
pub(crate) struct UpstreamSession {
    resource: ResourceUri,
    backend: Box<[u8]>,
}

/// The upstream of one resource, called from the control runtime.
#[derive(Clone)]
pub(crate) enum Upstream {
    Demo(Box<DemoService>),
    Http(HttpUpstream),
}

/// The upstreams by their resource, each with the header that names its sessions.
pub(crate) type Upstreams = HashMap<ResourceUri, (HeaderName, Upstream)>;

impl SessionEvents {
    pub(crate) fn new(audit: Option<Audit>) -> (Self, mpsc::Receiver<UpstreamSession>) {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        (Self { upstream_ends: UpstreamEndQueue(queue), audit }, queued)
    }

    pub(crate) fn upstream_ends(&self) -> &UpstreamEndQueue {
        &self.upstream_ends
    }
}

impl SessionObserver for SessionEvents {
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
            // All sessions end at once: more than the queue can take, and one line in the log is enough.
            tracing::debug!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
            return;
        }
        tracing::info!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
        // The upstream already ended these: it was asked to delete them, or no longer knew them.
        let upstream_is_unaware = !matches!(reason, EndReason::Deleted | EndReason::TransportClosed);
        if upstream_is_unaware && !session.backend_id().is_empty() {
            self.upstream_ends.add(session.resource().clone(), session.backend_id().into());
        }
    }
}

/// Ends the queued sessions at their upstreams.
pub(crate) struct UpstreamEnder {
    pub(crate) queued: mpsc::Receiver<UpstreamSession>,
    pub(crate) upstreams: Upstreams,
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
                Some(session) = self.queued.recv(), if requests.len() < MAX_CONCURRENT => self.end(&mut requests, session),
            }
        };
        self.queued.close();
        while let Some(session) = self.queued.recv().await {
            wait_for_capacity(&mut requests).await;
            self.end(&mut requests, session);
        }
        for session in last.iter().filter(|session| !session.backend_id().is_empty()) {
            wait_for_capacity(&mut requests).await;
            let session =
                UpstreamSession { resource: session.resource().clone(), backend: session.backend_id().into() };
            self.end(&mut requests, session);
        }
        while requests.join_next().await.is_some() {}
    }

    fn end(&self, requests: &mut JoinSet<()>, UpstreamSession { resource, backend }: UpstreamSession) {
        if let Some((header, upstream)) = self.upstreams.get(&resource) {
            let (header, mut upstream) = (header.clone(), upstream.clone());
            requests.spawn(async move { upstream.end(&header, &backend).await });
        }
    }
}

async fn wait_for_capacity(requests: &mut JoinSet<()>) {
    while requests.len() >= MAX_CONCURRENT {
        requests.join_next().await;
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
        tracing::debug!(status = status.as_u16(), "the session was ended at its upstream");
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use portcullis_metadata::{Clock, Scopes, UnixTime};
    use portcullis_session::{Owner, SessionKey, SessionSettings, SessionStore};

    use super::*;

    struct FixedClock;

    impl Clock for FixedClock {
        fn now(&self) -> UnixTime {
            UnixTime::from_secs(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn end(reason: EndReason, backend: &[u8]) -> Option<Box<[u8]>> {
        let (events, mut queued) = SessionEvents::new(None);
        let settings = SessionSettings::new(SessionKey::new(0, [7; 16]));
        let store = SessionStore::new(settings, Arc::new(FixedClock), Arc::new(events));
        let resource = ResourceUri::parse("http://127.0.0.1/mcp").unwrap();
        let reservation = store.reserve(&resource, Owner::Anonymous, &Scopes::empty()).unwrap();
        store.end(&reservation.open(backend.into(), None).unwrap(), reason);
        queued.try_recv().ok().map(|session| session.backend)
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
        assert_eq!(end(EndReason::Shutdown, b"backend"), None, "the shutdown ends all of them itself");
        assert_eq!(end(EndReason::Idle, b""), None, "the upstream keeps no sessions");
    }
}
