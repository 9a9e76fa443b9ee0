use std::sync::{Arc, atomic::AtomicBool};

use portcullis_discovery::Product;
use portcullis_endpoint::StreamRegistry;
use portcullis_metadata::Clock;
use portcullis_session::SessionStore;

use crate::{
    broker::process::BrokerProcess,
    observers::Observers,
    persistence::session_persistence::SessionPersistence,
    replicas::Replicas,
    sessions::{
        events::SessionEvents,
        upstream_end::{UpstreamEndQueue, UpstreamEnder},
    },
};
use portcullis_config::plan::Plan;

/// The parts of the server that outlive a configuration. Clones share them.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) sessions: SessionStore,
    /// The connection to other replicas. `None` if there is one replica.
    pub(crate) replicas: Option<Replicas>,
    /// `None` without a broker.
    pub(crate) broker: Option<BrokerProcess>,
    /// The open event streams.
    pub(crate) streams: StreamRegistry,
    pub(crate) clock: Arc<dyn Clock>,
    /// The program, as its requests to issuers name it.
    pub(crate) product: Product,
    pub(crate) observers: Arc<Observers>,
    /// The upstream sessions that must end.
    pub(crate) upstream_ends: UpstreamEndQueue,
    /// Whether the server shuts down, so that it is not ready.
    pub(crate) is_draining: Arc<AtomicBool>,
    /// The number of workers. It does not change.
    pub(crate) workers: usize,
    /// The maximum number of sessions. It does not change.
    pub(crate) max_sessions: usize,
}

impl Process {
    /// Returns the parts for a first plan, and the task that ends sessions at the upstreams.
    pub(crate) fn new(
        plan: &Plan,
        product: Product,
        clock: Arc<dyn Clock>,
        observers: Observers,
        persistence: &mut SessionPersistence,
    ) -> (Self, UpstreamEnder) {
        let (upstream_ends, ender) = UpstreamEndQueue::new();
        let events = SessionEvents {
            upstream_ends: upstream_ends.clone(),
            audit: observers.audit.clone(),
            metrics: observers.metrics.clone(),
        };
        let sessions = persistence.store(Arc::clone(&clock), Arc::new(events));
        let observers = Arc::new(observers);
        let streams = StreamRegistry::new(Arc::clone(&clock), Arc::clone(&observers) as _);
        let process = Self {
            sessions,
            replicas: persistence.replicas().cloned(),
            broker: None,
            streams,
            clock,
            product,
            observers,
            upstream_ends,
            is_draining: Arc::default(),
            workers: plan.workers,
            max_sessions: plan.session.settings.max_total,
        };
        (process, ender)
    }

    /// Adds what of the broker outlives a configuration.
    pub(crate) fn with_broker(self, broker: Option<BrokerProcess>) -> Self {
        Self { broker, ..self }
    }
}
