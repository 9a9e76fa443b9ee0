//! A reservation of capacity for a session.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_metadata::ResourceUri;

use super::{Inner, SessionStore, in_use::InUse};
use crate::{
    error::ReservationError,
    identifier::{self, TaggedId},
    owner::Owner,
    session::{Record, Session},
};

/// The capacity for one session. It is released on drop. Created by [`SessionStore::reserve`].
#[must_use = "dropping a reservation releases its capacity"]
pub struct Reservation {
    permit: CapacityPermit,
    resource: ResourceUri,
    id: TaggedId,
    scopes_hash: u64,
}

impl Reservation {
    pub(super) fn new(permit: CapacityPermit, resource: ResourceUri, id: TaggedId, scopes_hash: u64) -> Self {
        Self { permit, resource, id, scopes_hash }
    }

    /// Returns a permit that keeps the capacity reserved beyond the reservation, for a task that continues to open the
    /// backend's session after the client has disconnected.
    pub fn capacity_permit(&self) -> CapacityPermit {
        self.permit.clone()
    }

    /// Records the session and takes it into use. `backend_id` is the backend's opaque identifier for the session.
    /// `protocol_version` is the negotiated version, if it is known ([`Session::set_protocol_version`]).
    ///
    /// At the owner's limit, the owner's least recently used session that is not in use ends with
    /// [`EndReason::Evicted`](crate::EndReason::Evicted).
    ///
    /// # Errors
    /// Returns [`ReservationError::OwnerLimit`] if the owner is at the limit and has taken all sessions into use since the
    /// reservation. The caller must end the backend's session then.
    pub fn open(
        self,
        backend_id: Box<[u8]>,
        protocol_version: Option<&'static str>,
    ) -> Result<InUse, ReservationError> {
        let Self { permit: CapacityPermit(permit), resource, id, scopes_hash } = self;
        let store = &permit.store;
        let log_hash = identifier::log_hash(&store.log_key, &id.random());
        let encoded_owner = permit.encoded_owner.clone();
        let record = Record { id, scopes_hash, log_hash, resource, encoded_owner, backend_id, protocol_version };
        let session = Arc::new(Session::new(record, store.clock.monotonic()));
        store.record(&session)?;
        permit.is_recorded.store(true, Ordering::Release);
        Ok(InUse::new(SessionStore(Arc::clone(store)), session, 0, scopes_hash))
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

/// Keeps the capacity of a reservation until its last clone is dropped, unless a session was opened with it. Created by
/// [`Reservation::capacity_permit`].
#[derive(Clone)]
pub struct CapacityPermit(Arc<PermitInner>);

struct PermitInner {
    store: Arc<Inner>,
    encoded_owner: Option<Arc<[u8]>>,
    /// The capacity belongs to a session.
    is_recorded: AtomicBool,
}

impl CapacityPermit {
    pub(super) fn reserve(store: &Arc<Inner>, owner: Owner<'_>) -> Result<Self, ReservationError> {
        let encoded_owner = store.capacity.reserve(owner)?;
        let store = Arc::clone(store);
        Ok(Self(Arc::new(PermitInner { store, encoded_owner, is_recorded: AtomicBool::new(false) })))
    }
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        if !*self.is_recorded.get_mut() {
            self.store.capacity.cancel(self.encoded_owner.as_ref());
        }
    }
}

impl fmt::Debug for CapacityPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityPermit").finish_non_exhaustive()
    }
}
