//! A session, its identifiers and its owner.

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

use portcullis_metadata::{ResourceUri, UnixTime};

use self::use_state::UseState;
pub(crate) use self::{
    lifecycle::{Eviction, Timeouts, millis},
    use_state::Status,
};
use crate::{
    identifier::{
        AssociatedData, Generation, Generations, Identifier, MAX_BACKEND_ID, RandomPart, Record, SessionId, SessionKey,
        Version, seal, successor_random,
    },
    owner::Owner,
    planted::{Fault, is_planted},
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
    /// When this process opened or adopted the session, in milliseconds of the store's monotonic clock.
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

/// The last generation of the key list. Generations are not counted beyond it, so the list is searched on each use.
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

/// The current time by the wall clock and by the monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) unix: UnixTime,
    pub(crate) monotonic: Duration,
}

impl Session {
    /// Returns a session with one use in progress.
    pub(crate) fn new(new: NewSession, now: Now) -> Self {
        let NewSession { first, record, key, target, encoded_owner, backend_id, is_adopted } = new;
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
            age_when_opened: if is_planted(Fault::LifetimeFromFirstSight) {
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

    /// The longest backend identifier that fits in an identifier, in bytes. A session with a longer one is not
    /// [sealed](Self::is_sealed).
    pub const MAX_BACKEND_ID: usize = MAX_BACKEND_ID;

    /// Returns the newest identifier of the session. Each call seals it again.
    pub fn identifier(&self) -> Identifier {
        self.newest_generation().map_or_else(|| self.sealed(&self.first), |newest| self.sealed(&newest))
    }

    /// Returns the backend's identifier for the session, as passed to [`Reservation::open`](crate::Reservation::open).
    pub fn backend_id(&self) -> &[u8] {
        &self.backend_id
    }

    /// Returns whether the session's identifiers contain the backend's identifier. If so, other processes with the key can
    /// continue the session. If not, the session ends with this process.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Returns whether another process opened the session, or this one before a restart.
    pub fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Returns the time at which the session was created, by the clock of the process that created it.
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
        self.encoded_owner.as_deref().map_or(Owner::Anonymous, Owner::decode)
    }

    /// Returns the session's name in logs: a short keyed hash, equal in all processes with the key. It does not reveal the
    /// identifier.
    pub fn log_hash(&self) -> LogHash {
        LogHash(self.key.log_hash(&self.id))
    }

    /// Returns the value that another layer has attached; `None` if there is none, or if it has another type.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.attachment.get()?.downcast_ref()
    }

    /// Attaches a value, such as the session's open streams, unless one is attached. Returns the attached value; `None` if
    /// the one that was attached before has another type. The value is dropped with the session.
    pub fn attach<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attachment.get_or_init(|| Box::new(make())).downcast_ref()
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

    /// Returns the newest identifier, if it is not [`first`](Self::first).
    pub(crate) fn newest_generation(&self) -> Option<Arc<Generation>> {
        self.others.get()?.newest().filter(|newest| newest.number > self.first.number)
    }

    /// Returns the identifiers other than [`first`](Self::first), to add one.
    pub(crate) fn others(&self) -> &Generations {
        self.others.get_or_init(Box::default)
    }

    /// Removes the identifiers other than [`first`](Self::first) and returns their random parts.
    pub(crate) fn take_others(&self) -> Vec<RandomPart> {
        self.others.get().map(|others| others.take()).unwrap_or_default()
    }

    /// Returns the identifier that follows `current`, for a token with other scopes. All processes make the same one.
    pub(crate) fn successor(&self, current: &Generation, fingerprint: u64, now: Duration) -> Option<Generation> {
        let record = self.record(current.number.checked_add(1)?, fingerprint);
        let bound_to = AssociatedData::new(self.resource(), self.owner());
        let random = successor_random(&self.key, &bound_to, &current.random, &record);
        let identifier = seal(&self.key, &bound_to, &random, &record)?;
        let text_hash = self.key.text_hash(identifier.as_bytes());
        Some(Generation::new(random, text_hash, record.generation, fingerprint, millis(now)))
    }

    /// Returns the text of one of the session's identifiers.
    fn sealed(&self, generation: &Generation) -> Identifier {
        let record = self.record(generation.number, generation.fingerprint);
        let bound_to = AssociatedData::new(self.resource(), self.owner());
        // The record fits: it was sealed before.
        seal(&self.key, &bound_to, &generation.random, &record).unwrap_or_else(Identifier::empty)
    }

    fn record(&self, generation: u32, fingerprint: u64) -> Record {
        Record {
            session: self.id,
            generation,
            created: self.created,
            upstream: self.key.upstream_hash(self.target.upstream()),
            fingerprint,
            version: self.version,
            backend_id: self.is_sealed.then(|| self.backend_id.clone()),
        }
    }

    /// Returns the lowest generation whose identifiers resolve.
    pub(crate) fn lowest_generation(&self) -> u32 {
        self.lowest_generation.load(Ordering::Acquire)
    }

    /// Ends the generations below `lowest`. Returns whether some of them were still valid, and the random parts of the removed
    /// identifiers.
    pub(crate) fn end_generations_below(&self, lowest: u32) -> (bool, Vec<RandomPart>) {
        let before = self.lowest_generation.fetch_max(lowest, Ordering::AcqRel);
        let removed = self.others.get().map(|others| others.remove_below(lowest)).unwrap_or_default();
        (before < lowest, removed)
    }

    /// Returns the lowest generation that still resolves according to the uses in this process, if it is higher than
    /// [`lowest_generation`](Self::lowest_generation). The caller then ends the earlier ones.
    pub(crate) fn retirement(&self, now: Duration) -> Option<u32> {
        let others = self.others.get();
        if others.is_none() && self.first.number == 0 {
            return None;
        }
        let now = millis(now);
        let by_first = if self.first.retires_earlier(now) { self.first.number } else { 0 };
        let lowest = others.map_or(0, |others| others.lowest_valid(now)).max(by_first);
        (lowest > self.lowest_generation()).then_some(lowest)
    }

    /// Returns the id of the owner.
    pub(crate) fn owner_id(&self) -> ScopeId {
        ScopeId::of_encoded_owner(self.encoded_owner.as_deref())
    }

    /// Returns the encoding of the owner; `None` for [`Owner::Anonymous`].
    pub(crate) fn encoded_owner(&self) -> Option<&Arc<[u8]>> {
        self.encoded_owner.as_ref()
    }

    /// Returns whether this is the resource and the owner of the session. The upstream is not compared.
    pub(crate) fn belongs_to(&self, resource: &ResourceUri, owner: Owner<'_>) -> bool {
        self.target.resource() == resource
            && match &self.encoded_owner {
                Some(encoded) => owner.is_encoded_as(encoded),
                None => owner == Owner::Anonymous,
            }
    }

    /// Returns whether the key list of this generation is known to contain the key. If not, the list must be searched.
    pub(crate) fn is_known_as_listed(&self, generation: u16) -> bool {
        generation != UNCACHED_GENERATION && self.listed_generation.load(Ordering::Relaxed) == generation
    }

    /// Records that the key list of this generation contains the key.
    pub(crate) fn set_listed(&self, generation: u16) {
        self.listed_generation.store(generation, Ordering::Relaxed);
    }

    /// Returns the position in the heap of the owner's sessions. Call this only with the owner's lock.
    pub(crate) fn heap_position(&self) -> usize {
        self.heap_position.load(Ordering::Relaxed) as usize
    }

    /// Sets the position in the heap of the owner's sessions. Call this only with the owner's lock.
    pub(crate) fn set_heap_position(&self, position: usize) {
        // An owner cannot have 2^32 sessions: each takes hundreds of bytes.
        self.heap_position.store(u32::try_from(position).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("log_hash", &self.log_hash()).finish_non_exhaustive()
    }
}

/// A session's name in logs: 16 hexadecimal digits. See [`Session::log_hash`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogHash(u64);

impl LogHash {
    /// Returns the hash with this text: 16 lowercase hexadecimal digits. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_well_formed = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let hash = is_well_formed.then(|| u64::from_str_radix(text, 16).ok())?;
        hash.map(Self)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// E3: the text of a log hash is parsed as that hash, and no other text is.
    #[test]
    fn log_hashes_are_parsed() {
        for hash in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX].map(LogHash) {
            assert_eq!(LogHash::parse(&hash.to_string()), Some(hash));
        }
        for text in [
            "",
            "0",
            "0123456789abcde",
            "0123456789abcdef0",
            "0123456789ABCDEF",
            "+123456789abcdef",
            "0123456789abcdeg",
        ] {
            assert_eq!(LogHash::parse(text), None, "{text}");
        }
    }
}
