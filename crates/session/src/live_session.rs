//! [`Session`]: one session, with its owner, its target and its key.

mod identifiers;
mod lifecycle;
mod log_hash;
mod use_state;

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
};

use portcullis_metadata::{Now, ResourceUri, UnixTime};

pub use self::log_hash::LogHash;
use self::use_state::UseState;
pub(crate) use self::{
    identifiers::EndedGenerations,
    lifecycle::{Eviction, Timeouts, millis},
    use_state::Status,
};
use crate::{
    fault_injection::{Fault, is_injected},
    identifier::{Generation, Generations, MAX_BACKEND_ID, Record, SessionId, SessionKey, Version},
    owner::Owner,
    scope::{ScopeId, SessionTarget},
};

/// A session. `Debug` prints only the hash for logs.
pub struct Session {
    id: SessionId,
    /// The identifier with which this process opened or adopted the session.
    first: Generation,
    /// The other identifiers. Most sessions have none.
    others: OnceLock<Box<Generations>>,
    /// The lowest generation whose identifiers resolve.
    lowest_generation: AtomicU32,
    /// The key that seals the identifiers.
    key: SessionKey,
    created: UnixTime,
    target: SessionTarget,
    /// The encoding of the owner; `None` for [`Owner::Anonymous`].
    encoded_owner: Option<Arc<[u8]>>,
    backend_id: Box<[u8]>,
    /// Whether the identifiers contain `backend_id`.
    is_sealed: bool,
    /// Whether another process opened the session, or this one before a restart.
    is_adopted: bool,
    version: Version,
    /// When this process opened or adopted the session, in milliseconds of the store's monotonic
    /// clock.
    opened: u64,
    /// The age of the session at the time `opened`, in milliseconds.
    age_when_opened: u64,
    use_state: UseState,
    /// The position in the heap of the owner's sessions. Accessed under the owner's lock.
    heap_position: AtomicU32,
    /// The newest generation of the key list that is known to contain the key.
    listed_generation: AtomicU16,
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The last generation of the key list. Generations are not counted beyond it, so the list is
/// searched on each use.
pub(crate) const UNCACHED_GENERATION: u16 = u16::MAX;

/// The data of a session that this process opens or adopts.
pub(crate) struct NewSession {
    /// The identifier with which this process opens or adopts the session.
    pub(crate) first: Generation,
    /// The record in that identifier.
    pub(crate) record: Record,
    pub(crate) key: SessionKey,
    pub(crate) target: SessionTarget,
    pub(crate) encoded_owner: Option<Arc<[u8]>>,
    /// The backend's identifier, even if it does not fit in the record.
    pub(crate) backend_id: Box<[u8]>,
    /// Whether another process opened the session, or this one before a restart.
    pub(crate) is_adopted: bool,
}

impl Session {
    /// Returns a session with one use in progress.
    pub(crate) fn new(new: NewSession, now: Now) -> Self {
        let NewSession {
            first,
            record,
            key,
            target,
            encoded_owner,
            backend_id,
            is_adopted,
        } = new;
        let opened = millis(now.monotonic);
        Self {
            id: record.session,
            first,
            others: OnceLock::new(),
            lowest_generation: AtomicU32::new(0),
            key,
            created: record.created,
            target,
            encoded_owner,
            backend_id,
            is_sealed: record.backend_id.is_some(),
            is_adopted,
            version: record.version,
            opened,
            age_when_opened: if is_injected(Fault::LifetimeFromFirstSight) {
                0
            } else {
                millis(now.unix.saturating_duration_since(record.created))
            },
            use_state: UseState::opened(),
            heap_position: AtomicU32::new(0),
            listed_generation: AtomicU16::new(0),
            attachment: OnceLock::new(),
        }
    }

    /// The longest backend identifier that fits in an identifier, in bytes. A session with a longer
    /// one is not [sealed](Self::is_sealed).
    pub const MAX_BACKEND_ID: usize = MAX_BACKEND_ID;

    /// Returns the backend's identifier for the session, as passed to
    /// [`Reservation::open`](crate::Reservation::open).
    pub fn backend_id(&self) -> &[u8] {
        &self.backend_id
    }

    /// Returns whether the session's identifiers contain the backend's identifier. If so, other
    /// processes with the key can continue the session. If not, the session ends with this process.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Returns whether another process opened the session, or this one before a restart.
    pub fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Returns the time at which the session was created, by the clock of the process that created
    /// it.
    pub fn created(&self) -> UnixTime {
        self.created
    }

    /// Returns the negotiated protocol version, if it is known.
    pub fn protocol_version(&self) -> Option<&str> {
        Some(self.version.as_str()).filter(|version| !version.is_empty())
    }

    /// Returns the resource and the upstream of the session.
    pub fn target(&self) -> &SessionTarget {
        &self.target
    }

    /// Returns the resource of the session.
    pub fn resource(&self) -> &ResourceUri {
        self.target.resource()
    }

    /// Returns the owner of the session, for logs and audit records.
    pub fn owner(&self) -> Owner<'_> {
        self.encoded_owner
            .as_deref()
            .map_or(Owner::Anonymous, Owner::decode)
    }

    /// Returns the session's name in logs: a short keyed hash, equal in all processes with the key.
    /// It does not reveal the identifier.
    pub fn log_hash(&self) -> LogHash {
        LogHash(self.key.log_hash(&self.id))
    }

    /// Returns the value that another layer has attached; `None` if there is none, or if it has
    /// another type.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.attachment.get()?.downcast_ref()
    }

    /// Attaches a value, such as the session's open streams, unless one is attached. Returns the
    /// attached value; `None` if the one that was attached before has another type. The value is
    /// dropped with the session. The crate `portcullis-endpoint` attaches the streams of each
    /// session that it opens.
    pub fn attach<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attachment
            .get_or_init(|| Box::new(make()))
            .downcast_ref()
    }

    /// Returns the stable id of the session.
    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the key that seals the identifiers.
    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the identifier with which this process opened or adopted the session.
    pub(crate) fn first(&self) -> &Generation {
        &self.first
    }

    pub(crate) fn owner_id(&self) -> ScopeId {
        ScopeId::of_encoded_owner(self.encoded_owner.as_deref())
    }

    /// Returns the encoding of the owner; `None` for [`Owner::Anonymous`].
    pub(crate) fn encoded_owner(&self) -> Option<&Arc<[u8]>> {
        self.encoded_owner.as_ref()
    }

    /// Returns whether this is the resource and the owner of the session. The upstream is not
    /// compared.
    pub(crate) fn belongs_to(&self, resource: &ResourceUri, owner: Owner<'_>) -> bool {
        self.target.resource() == resource
            && match &self.encoded_owner {
                Some(encoded) => owner.is_encoded_as(encoded),
                None => owner == Owner::Anonymous,
            }
    }

    /// Returns whether the key list of this generation is known to contain the key. If not, the
    /// list must be searched.
    pub(crate) fn is_known_as_listed(&self, generation: u16) -> bool {
        generation != UNCACHED_GENERATION
            && self.listed_generation.load(Ordering::Relaxed) == generation
    }

    /// Records that the key list of this generation contains the key.
    pub(crate) fn set_listed(&self, generation: u16) {
        self.listed_generation.store(generation, Ordering::Relaxed);
    }

    /// Returns the position in the heap of the owner's sessions. Call this only with the owner's
    /// lock.
    pub(crate) fn heap_position(&self) -> usize {
        self.heap_position.load(Ordering::Relaxed) as usize
    }

    /// Sets the position in the heap of the owner's sessions. Call this only with the owner's lock.
    pub(crate) fn set_heap_position(&self, position: usize) {
        // An owner cannot have 2^32 sessions: each takes hundreds of bytes.
        self.heap_position.store(
            u32::try_from(position).unwrap_or(u32::MAX),
            Ordering::Relaxed,
        );
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("log_hash", &self.log_hash())
            .finish_non_exhaustive()
    }
}
