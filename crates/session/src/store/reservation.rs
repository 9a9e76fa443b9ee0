use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Inner, SessionStore,
    capacity::{Elsewhere, Reserved},
    in_use::InUse,
};
use crate::{
    error::ReservationError,
    identifier::{
        AssociatedData, Generation, Identifier, MAX_BACKEND_ID, Record, SessionId, SessionKey,
        Version, seal,
    },
    live_session::{NewSession, Session, millis},
    owner::Owner,
    scope::SessionTarget,
};

/// The capacity for one session. It is released on drop. Created by [`SessionStore::reserve`].
#[must_use = "dropping a reservation releases its capacity"]
pub struct Reservation {
    pub(super) permit: CapacityPermit,
    pub(super) target: SessionTarget,
    pub(super) key: SessionKey,
    pub(super) id: SessionId,
    pub(super) fingerprint: u64,
}

impl Reservation {
    /// Returns a permit that keeps the capacity reserved beyond the reservation, for a task that
    /// continues to open the backend's session after the client has disconnected.
    pub fn capacity_permit(&self) -> CapacityPermit {
        self.permit.clone()
    }

    /// Opens the session and takes it into use. `backend_id` is the backend's opaque identifier for
    /// the session. `protocol_version` is the negotiated version, if it is known. A version of more
    /// than 15 bytes is ignored.
    ///
    /// A `backend_id` of more than [`Session::MAX_BACKEND_ID`] bytes does not fit in an identifier,
    /// and the session ends with this process.
    ///
    /// At the owner's limit, the owner's least recently used session that is not in use ends with
    /// [`EndReason::Evicted`](crate::EndReason::Evicted).
    ///
    /// # Errors
    /// Returns [`ReservationError::OwnerLimit`] if the owner is at the limit and has taken all
    /// sessions into use since the reservation. The caller must end the backend's session then.
    pub fn open(
        self,
        backend_id: Box<[u8]>,
        protocol_version: Option<&str>,
    ) -> Result<InUse, ReservationError> {
        let Self {
            permit: CapacityPermit(permit),
            target,
            key,
            id,
            fingerprint,
        } = self;
        let store = &permit.store;
        let encoded_owner = permit.encoded_owner.clone();
        let owner = encoded_owner
            .as_deref()
            .map_or(Owner::Anonymous, Owner::decode);
        let now = store.clock.read();
        let record = Record {
            session: id,
            generation: 0,
            created: store.ends.next_creation(owner, &target, now.unix),
            upstream: key.upstream_hash(target.upstream()),
            fingerprint,
            version: protocol_version.map(Version::new).unwrap_or_default(),
            backend_id: (backend_id.len() <= MAX_BACKEND_ID).then(|| backend_id.clone()),
        };
        // The record fits: its variable parts are bounded.
        let identifier = seal(
            &key,
            &AssociatedData::new(target.resource(), owner),
            &id,
            &record,
        );
        let text_hash = key.text_hash(identifier.unwrap_or_else(Identifier::empty).as_bytes());
        let first = Generation::new(id, text_hash, 0, fingerprint, millis(now.monotonic));
        let new = NewSession {
            first,
            record,
            key,
            target,
            encoded_owner,
            backend_id,
            is_adopted: false,
        };
        let session = Arc::new(Session::new(new, now));
        store.record(
            &session,
            permit.elsewhere.of_owner,
            permit.counts_for_subject,
        )?;
        permit.set_recorded();
        Ok(InUse::new(
            SessionStore(Arc::clone(store)),
            session,
            None,
            fingerprint,
        ))
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

/// Keeps the capacity of a reservation until its last clone is dropped, unless a session was opened
/// with it. Created by [`Reservation::capacity_permit`].
#[derive(Clone)]
pub struct CapacityPermit(pub(super) Arc<PermitInner>);

/// The reserved capacity. It is released when the last permit is dropped, unless a session was
/// recorded.
pub(super) struct PermitInner {
    store: Arc<Inner>,
    pub(super) encoded_owner: Option<Arc<[u8]>>,
    /// What only other processes had at the reservation.
    pub(super) elsewhere: Elsewhere,
    /// Whether the reservation counts for the owner's subject.
    pub(super) counts_for_subject: bool,
    /// Whether the capacity belongs to a session now.
    is_recorded: AtomicBool,
}

impl CapacityPermit {
    /// Reserves capacity for a new session, or for one that another process has.
    pub(super) fn reserve(
        store: &Arc<Inner>,
        owner: Owner<'_>,
        adopted: Option<&SessionId>,
    ) -> Result<Self, ReservationError> {
        let elsewhere = store.sessions_elsewhere(owner, adopted);
        let Reserved {
            encoded_owner,
            counts_for_subject,
        } = store.capacity.reserve(owner, elsewhere)?;
        let store = Arc::clone(store);
        let is_recorded = AtomicBool::new(false);
        Ok(Self(Arc::new(PermitInner {
            store,
            encoded_owner,
            elsewhere,
            counts_for_subject,
            is_recorded,
        })))
    }
}

impl PermitInner {
    /// Passes the capacity to the session, which has been recorded.
    pub(super) fn set_recorded(&self) {
        self.is_recorded.store(true, Ordering::Release);
    }
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        if !*self.is_recorded.get_mut() {
            self.store
                .capacity
                .cancel(self.encoded_owner.as_deref(), self.counts_for_subject);
        }
    }
}

impl fmt::Debug for CapacityPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityPermit").finish_non_exhaustive()
    }
}
