//! [`Receiver`]: applies records and messages in this process.

use std::sync::Arc;

use portcullis_session::SessionStore;

use super::record::{KnownDrops, Record};
use crate::{LimitCounts, Revocations};

/// The parts of this process to which messages of other replicas go.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) sessions: SessionStore,
    pub(crate) counts: Arc<dyn LimitCounts>,
    pub(crate) revocations: Arc<dyn Revocations>,
}

impl Receiver {
    /// Applies a record of another replica, or of this one. A drop of tokens that is in `drops` was
    /// applied before.
    pub(crate) fn apply(&self, record: &Record, drops: &KnownDrops) {
        match record {
            Record::End(end) => self.sessions.import(end),
            Record::Drop(drop) => {
                if drops.add(*drop) {
                    self.revocations.drop_issuer(drop.issuer);
                }
            }
        }
    }
}
