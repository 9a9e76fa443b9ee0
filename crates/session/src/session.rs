//! A session: its data, and its accessors.

mod lifecycle;
mod use_state;

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::ResourceUri;

pub(crate) use self::lifecycle::{Eviction, Status, Timeouts, millis};
use self::use_state::UseState;
use crate::{
    identifier::{Identifier, RandomPart, Rotation, Rotations, TaggedId},
    owner::Owner,
};

/// A session. `Debug` prints only the hash for logs.
pub struct Session {
    /// The identifier with which the session was opened.
    first_id: TaggedId,
    /// The later identifiers. Most sessions have none.
    rotations: OnceLock<Box<Rotations>>,
    /// The hash of the scopes with which the session was opened.
    scopes_hash: u64,
    log_hash: u64,
    resource: ResourceUri,
    /// The encoding of the owner; `None` for [`Owner::Anonymous`].
    encoded_owner: Option<Arc<[u8]>>,
    backend_id: Box<[u8]>,
    protocol_version: OnceLock<&'static str>,
    /// The opening time, in milliseconds of the store's monotonic clock.
    opened: u64,
    use_state: UseState,
    /// The position in the heap of the owner's sessions. Accessed under the owner's lock.
    heap_position: AtomicU32,
    /// The generation of the key list that last verified the first identifier.
    verified_generation: AtomicU16,
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The generation of a key list for which tags are computed each time. Generations are not counted beyond it.
pub(crate) const UNCACHED_GENERATION: u16 = u16::MAX;

/// The data of a new session.
pub(crate) struct Record {
    pub(crate) id: TaggedId,
    pub(crate) scopes_hash: u64,
    pub(crate) log_hash: u64,
    pub(crate) resource: ResourceUri,
    pub(crate) encoded_owner: Option<Arc<[u8]>>,
    pub(crate) backend_id: Box<[u8]>,
    pub(crate) protocol_version: Option<&'static str>,
}

impl Session {
    /// Returns a session with one use in progress.
    pub(crate) fn new(record: Record, now: Duration) -> Self {
        let Record { id, scopes_hash, log_hash, resource, encoded_owner, backend_id, protocol_version } = record;
        Self {
            first_id: id,
            rotations: OnceLock::new(),
            scopes_hash,
            log_hash,
            resource,
            encoded_owner,
            backend_id,
            protocol_version: protocol_version.map(OnceLock::from).unwrap_or_default(),
            opened: millis(now),
            use_state: UseState::opened(),
            heap_position: AtomicU32::new(0),
            verified_generation: AtomicU16::new(0),
            attachment: OnceLock::new(),
        }
    }

    /// Returns the newest identifier of the session.
    pub fn identifier(&self) -> Identifier {
        self.newest_rotation().map_or(self.first_id, |newest| newest.id).identifier()
    }

    /// Returns the backend's identifier for the session, as passed to [`Reservation::open`](crate::Reservation::open).
    pub fn backend_id(&self) -> &[u8] {
        &self.backend_id
    }

    /// Returns the negotiated protocol version, if it is known.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.protocol_version.get().copied()
    }

    /// Sets the negotiated protocol version, if it was not known when the session was opened. Later calls have no effect.
    pub fn set_protocol_version(&self, version: &'static str) {
        self.protocol_version.get_or_init(|| version);
    }

    /// Returns the resource of the session.
    pub fn resource(&self) -> &ResourceUri {
        &self.resource
    }

    /// Returns the owner of the session, for logs and audit records.
    pub fn owner(&self) -> Owner<'_> {
        self.encoded_owner.as_deref().map_or(Owner::Anonymous, Owner::decode)
    }

    /// Returns the session's name in logs: a short keyed hash. The identifier cannot be computed from it.
    pub fn log_hash(&self) -> LogHash {
        LogHash(self.log_hash)
    }

    /// Returns the value that another layer has attached. `None` if there is none, or it has another type.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.attachment.get()?.downcast_ref()
    }

    /// Attaches a value, such as the session's open streams, unless one is attached. Returns the attached value; `None` if
    /// it has another type. The value is dropped with the session.
    pub fn attach<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attachment.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// Returns the session's key in the table. It does not change, even when the first identifier no longer resolves.
    pub(crate) fn table_key(&self) -> RandomPart {
        self.first_id.random()
    }

    pub(crate) fn scopes_hash(&self) -> u64 {
        self.scopes_hash
    }

    /// Returns the newest identifier, if it is not the first.
    pub(crate) fn newest_rotation(&self) -> Option<Rotation> {
        self.rotations.get()?.newest()
    }

    /// Returns the later identifiers, to add one.
    pub(crate) fn rotations(&self) -> &Rotations {
        self.rotations.get_or_init(|| Box::new(Rotations::empty()))
    }

    /// Removes the later identifiers.
    pub(crate) fn take_rotations(&self) -> Vec<RandomPart> {
        self.rotations.get().map(|rotations| rotations.take()).unwrap_or_default()
    }

    /// Marks the identifier with this number as used. Returns whether it still resolves.
    pub(crate) fn mark_used(&self, number: u32, now: Duration) -> bool {
        self.rotations.get().is_none_or(|rotations| rotations.mark_used(number, millis(now)))
    }

    /// Returns whether the identifier with this number no longer resolves.
    pub(crate) fn is_retired(&self, number: u32, now: Duration) -> bool {
        self.rotations.get().is_some_and(|rotations| rotations.is_retired(number, millis(now)))
    }

    pub(crate) fn encoded_owner(&self) -> Option<&Arc<[u8]>> {
        self.encoded_owner.as_ref()
    }

    pub(crate) fn belongs_to(&self, resource: &ResourceUri, owner: Owner<'_>) -> bool {
        self.resource == *resource
            && match &self.encoded_owner {
                Some(encoded) => owner.is_encoded_as(encoded),
                None => owner == Owner::Anonymous,
            }
    }

    /// Returns whether `id` is the first identifier and the key list of this generation has verified it. Its tag is not
    /// computed again then.
    pub(crate) fn is_verified(&self, id: &TaggedId, generation: u16) -> bool {
        generation != UNCACHED_GENERATION
            && self.verified_generation.load(Ordering::Relaxed) == generation
            && self.first_id.equals(id)
    }

    /// Remembers that the key list of this generation has verified an identifier of this session.
    pub(crate) fn set_verified(&self, id: &TaggedId, generation: u16) {
        if self.first_id.equals(id) {
            self.verified_generation.store(generation, Ordering::Relaxed);
        }
    }

    pub(crate) fn heap_position(&self) -> usize {
        self.heap_position.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn set_heap_position(&self, position: usize) {
        // An owner cannot have so many sessions: each takes hundreds of bytes.
        self.heap_position.store(u32::try_from(position).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("log_hash", &self.log_hash()).finish_non_exhaustive()
    }
}

/// A session's name in logs: 16 hexadecimal digits. See [`Session::log_hash`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogHash(u64);

impl fmt::Display for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
