//! [`BrokerProcess`]: what of the broker outlives a configuration.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use portcullis_broker::{Broker, Ends};
use portcullis_state_store::records::RecordStore;
use tokio::{runtime::Handle, sync::Semaphore};

use super::persistence::{BrokerPersistence, KeysOrigin, foreign_records, foreign_shared_records};

/// The maximum number of requests that the broker answers at a time.
const MAX_REQUESTS: usize = 512;
/// The maximum number of bodies of requests to the broker that arrive at a time.
const MAX_BODIES: usize = 1024;

/// What of the broker outlives a configuration. Clones share it.
#[derive(Clone)]
pub(crate) struct BrokerProcess {
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) keys: KeysOrigin,
    /// The file of the keys, if they are in the state directory.
    pub(crate) keys_file: Option<PathBuf>,
    /// The file of the records, if they are in one.
    pub(crate) records_file: Option<PathBuf>,
    /// Whether other replicas use the same records.
    pub(crate) is_shared: bool,
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
        let BrokerPersistence {
            records,
            keys,
            keys_file,
            records_file,
            is_shared,
        } = persistence;
        // A replica may start before it can read the ends of others.
        let ends = match is_shared {
            true => Ends::incomplete(),
            false => Ends::default(),
        };
        Self {
            records,
            keys,
            keys_file,
            records_file,
            is_shared,
            ends: Arc::new(ends),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            bodies: Arc::new(Semaphore::new(MAX_BODIES)),
            control: Handle::current(),
        }
    }

    /// Reads what a broker needs before its first request. Fails if the records were sealed with
    /// other keys, or cannot be read. Shared records are read later if they cannot be read now.
    pub(crate) async fn read_records(&self, broker: &Broker) -> anyhow::Result<()> {
        let are_foreign = broker.has_foreign_records().await;
        if matches!(are_foreign, Ok(true)) {
            let error = match &self.records_file {
                Some(file) => foreign_records(file, self.keys_file.as_deref()),
                None => foreign_shared_records(),
            };
            return Err(error.into());
        }
        match are_foreign.and(broker.load_ends().await) {
            Err(error) if !self.is_shared => {
                Err(error).context("state_dir: the records of the broker cannot be read")
            }
            _ => Ok(()),
        }
    }
}
