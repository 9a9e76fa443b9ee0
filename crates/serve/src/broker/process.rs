//! [`BrokerProcess`]: what of the broker outlives a configuration.

use std::sync::Arc;

use portcullis_broker::Ends;
use portcullis_state_store::records::RecordStore;
use tokio::{runtime::Handle, sync::Semaphore};

use super::persistence::{BrokerPersistence, KeysOrigin};

/// The maximum number of requests that the broker answers at a time.
const MAX_REQUESTS: usize = 512;
/// The maximum number of bodies of requests to the broker that arrive at a time.
const MAX_BODIES: usize = 1024;

/// What of the broker outlives a configuration. Clones share it.
#[derive(Clone)]
pub(crate) struct BrokerProcess {
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) keys: KeysOrigin,
    /// The ends of grants and tokens, of which the guards ask.
    pub(crate) ends: Arc<Ends>,
    /// The permits to answer a request.
    pub(crate) requests: Arc<Semaphore>,
    /// The permits to receive a body.
    pub(crate) bodies: Arc<Semaphore>,
    /// The runtime on which requests are answered.
    pub(crate) control: Handle,
}

impl BrokerProcess {
    /// Returns the parts for the first configuration. Its requests are answered on the current
    /// runtime.
    pub(crate) fn new(persistence: BrokerPersistence) -> Self {
        let BrokerPersistence { records, keys } = persistence;
        Self {
            records,
            keys,
            ends: Arc::default(),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            bodies: Arc::new(Semaphore::new(MAX_BODIES)),
            control: Handle::current(),
        }
    }
}
