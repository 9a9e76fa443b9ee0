//! The parts of the server that outlive a configuration.

use std::sync::{Arc, atomic::AtomicBool};

use portcullis_endpoint::StreamRegistry;
use portcullis_metadata::Clock;
use portcullis_session::SessionStore;

use super::super::{
    observers::Observers,
    sessions::{
        kept::KeptSessions,
        replicas::Replicas,
        upstream_end::{SessionEvents, UpstreamEndQueue, UpstreamEnder},
    },
};
use crate::plan::Plan;

/// The parts of the server that outlive a configuration. Clones share them.
#[derive(Clone)]
pub(in crate::serve) struct Process {
    pub(in crate::serve) sessions: SessionStore,
    /// The connection to other replicas. `None` if there is one replica.
    pub(in crate::serve) replicas: Option<Replicas>,
    pub(in crate::serve) streams: StreamRegistry,
    pub(in crate::serve) clock: Arc<dyn Clock>,
    pub(in crate::serve) observers: Arc<Observers>,
    pub(in crate::serve) upstream_ends: UpstreamEndQueue,
    pub(in crate::serve) is_draining: Arc<AtomicBool>,
    /// The number of workers. It does not change.
    pub(in crate::serve) workers: usize,
    /// The maximum number of sessions. It does not change.
    pub(in crate::serve) max_sessions: usize,
}

impl Process {
    /// Returns the parts for a first plan, and the task that ends sessions at the upstreams.
    pub(in crate::serve) fn new(
        plan: &Plan,
        clock: Arc<dyn Clock>,
        observers: Observers,
        kept: &mut KeptSessions,
    ) -> (Self, UpstreamEnder) {
        let (events, ender) = SessionEvents::new(observers.audit.clone(), observers.metrics.clone());
        let upstream_ends = events.upstream_ends().clone();
        let sessions = kept.store(Arc::clone(&clock), Arc::new(events));
        let observers = Arc::new(observers);
        let streams = StreamRegistry::new(Arc::clone(&clock), Arc::clone(&observers) as _);
        (
            Self {
                sessions,
                replicas: kept.replicas().cloned(),
                streams,
                clock,
                observers,
                upstream_ends,
                is_draining: Arc::default(),
                workers: plan.workers,
                max_sessions: plan.session.settings.max_total,
            },
            ender,
        )
    }
}
