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

use crate::{
    EndReason, Identifier, Owner,
    identifier::{Name, Random},
    lineage::{Lineage, Successor},
    use_state::{State, Usage, UseState},
};

/// One session. Redacted in `Debug`, which shows the hash for logs only.
pub struct Session {
    /// The identifier that it was opened with.
    first: Name,
    /// Those that came after it; most sessions never have any.
    later: OnceLock<Box<Lineage>>,
    /// What the caller was allowed to do when it was opened.
    authorization: u64,
    log_hash: u64,
    resource: ResourceUri,
    /// The owner's encoding; nothing for [`Owner::Anonymous`].
    owner: Option<Arc<[u8]>>,
    backend: Box<[u8]>,
    protocol_version: OnceLock<&'static str>,
    /// Milliseconds of the store's monotonic clock.
    opened: u64,
    use_state: UseState,
    /// Its place among the sessions of its owner. Read and written under the lock of that owner.
    position: AtomicU32,
    /// The number of the list of keys by which the first identifier was last found to be issued.
    proved: AtomicU16,
    /// What a layer above keeps beside the session.
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The number of a list of keys for which tags are computed each time: lists are not counted beyond it.
pub(crate) const UNPROVABLE: u16 = u16::MAX;

/// What a session is made of.
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) authorization: u64,
    pub(crate) log_hash: u64,
    pub(crate) resource: ResourceUri,
    pub(crate) owner: Option<Arc<[u8]>>,
    pub(crate) backend: Box<[u8]>,
    pub(crate) protocol_version: Option<&'static str>,
}

/// How many milliseconds sessions may go unused and live.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    idle: u64,
    lifetime: u64,
}

impl Timeouts {
    pub(crate) fn new(idle: Duration, lifetime: Duration) -> Self {
        Self { idle: millis(idle), lifetime: millis(lifetime) }
    }
}

/// What a session is after an attempt to use it or to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Active,
    /// It ended by this attempt: the caller must remove it from the store.
    JustEnded(EndReason),
    Ended,
}

/// What an eviction found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    InUse,
    /// It was used at this moment, which is later than expected.
    UsedSince(u64),
    /// It ended by this attempt: the caller must remove it from the store.
    JustEnded,
    /// It had ended already.
    Ended,
}

impl Session {
    /// A session with one use under way.
    pub(crate) fn new(record: Record, now: Duration) -> Self {
        let Record { name, authorization, log_hash, resource, owner, backend, protocol_version } = record;
        Self {
            first: name,
            later: OnceLock::new(),
            authorization,
            log_hash,
            resource,
            owner,
            backend,
            protocol_version: protocol_version.map(OnceLock::from).unwrap_or_default(),
            opened: millis(now),
            use_state: UseState::opened(),
            position: AtomicU32::new(0),
            proved: AtomicU16::new(0),
            attachment: OnceLock::new(),
        }
    }

    /// The newest identifier that the session was given.
    pub fn identifier(&self) -> Identifier {
        self.successor().map_or(self.first, |newest| newest.name).identifier()
    }

    /// What the backend knows the session by, as given when it was opened.
    pub fn backend_id(&self) -> &[u8] {
        &self.backend
    }

    /// The protocol version agreed on, as far as it is known.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.protocol_version.get().copied()
    }

    /// Records the protocol version agreed on, where it was not known when the session was opened. The first one counts.
    pub fn set_protocol_version(&self, version: &'static str) {
        self.protocol_version.get_or_init(|| version);
    }

    /// The resource that the session belongs to.
    pub fn resource(&self) -> &ResourceUri {
        &self.resource
    }

    /// Whose the session is, for logs and audits.
    pub fn owner(&self) -> Owner<'_> {
        self.owner.as_deref().map_or(Owner::Anonymous, Owner::decode)
    }

    /// What logs name the session by: a short keyed hash, from which the identifier cannot be computed.
    pub fn log_hash(&self) -> LogHash {
        LogHash(self.log_hash)
    }

    /// What a layer above keeps beside the session, such as the session's open streams. There is one such value; `None`
    /// where none is attached, or one of another type.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.attachment.get()?.downcast_ref()
    }

    /// The same, made at the first call. It is dropped with the session. `None` where a value of another type is attached.
    pub fn attach<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attachment.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// What the session is filed under for as long as it lives, be it that its first identifier no longer resolves.
    pub(crate) fn random(&self) -> Random {
        self.first.random()
    }

    pub(crate) fn authorization(&self) -> u64 {
        self.authorization
    }

    /// The newest identifier, where it is not the first.
    pub(crate) fn successor(&self) -> Option<Successor> {
        self.later.get()?.newest()
    }

    /// Room for the identifiers after the first.
    pub(crate) fn later(&self) -> &Lineage {
        self.later.get_or_init(|| Box::new(Lineage::empty()))
    }

    /// Forgets the identifiers after the first.
    pub(crate) fn take_later(&self) -> Vec<Random> {
        self.later.get().map(|later| later.take()).unwrap_or_default()
    }

    /// Whether the identifier of this number still resolves; if so, it has been used.
    pub(crate) fn use_number(&self, number: u32, now: Duration) -> bool {
        self.later.get().is_none_or(|later| later.use_number(number, millis(now)))
    }

    /// Whether the identifier of this number no longer resolves.
    pub(crate) fn is_retired(&self, number: u32, now: Duration) -> bool {
        self.later.get().is_some_and(|later| later.is_retired(number, millis(now)))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.use_state.load() == State::Ended
    }

    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.use_state.load(), State::Active(usage) if usage.uses > 0)
    }

    /// Milliseconds of the store's monotonic clock at the last use, as far as the session has not ended.
    pub(crate) fn last_used(&self) -> Option<u64> {
        match self.use_state.load() {
            State::Active(usage) => Some(self.opened.saturating_add(usage.last_used)),
            State::Ended => None,
        }
    }

    pub(crate) fn encoded_owner(&self) -> Option<&Arc<[u8]>> {
        self.owner.as_ref()
    }

    /// Whether this is its first identifier, and was found to be issued by the keys of this number: then its tag need not be
    /// computed again.
    pub(crate) fn is_proved(&self, name: &Name, keys_number: u16) -> bool {
        keys_number != UNPROVABLE && self.proved.load(Ordering::Relaxed) == keys_number && self.first.is(name)
    }

    /// Remembers that an identifier of this session was found to be issued.
    pub(crate) fn prove(&self, name: &Name, keys_number: u16) {
        if self.first.is(name) {
            self.proved.store(keys_number, Ordering::Relaxed);
        }
    }

    pub(crate) fn belongs_to(&self, resource: &ResourceUri, owner: Owner<'_>) -> bool {
        self.resource == *resource
            && match &self.owner {
                Some(encoded) => owner.is_encoded_as(encoded),
                None => owner == Owner::Anonymous,
            }
    }

    /// Ends the session if its time is over, else begins a use of it at this moment. [`leave_use`](Self::leave_use) ends
    /// the use.
    pub(crate) fn take_into_use(&self, now: Duration, timeouts: Timeouts) -> Life {
        let since_opened = self.since_opened(now);
        let taken =
            self.use_state.change(|usage| match (over(usage, since_opened, timeouts), usage.begun(since_opened)) {
                (Some(reason), _) => (State::Ended, Life::JustEnded(reason)),
                (None, Some(begun)) => (State::Active(begun), Life::Active),
                (None, None) => (State::Active(usage), Life::Ended),
            });
        taken.unwrap_or(Life::Ended)
    }

    /// Ends one use at this moment, and the session if it has reached its lifetime.
    pub(crate) fn leave_use(&self, now: Duration, timeouts: Timeouts) -> Life {
        let since_opened = self.since_opened(now);
        let left = self.use_state.change(|usage| {
            if since_opened >= timeouts.lifetime {
                (State::Ended, Life::JustEnded(EndReason::Lifetime))
            } else {
                (State::Active(usage.finished(since_opened)), Life::Active)
            }
        });
        left.unwrap_or(Life::Ended)
    }

    /// Ends the session if its time is over.
    pub(crate) fn expire(&self, now: Duration, timeouts: Timeouts) -> Life {
        let since_opened = self.since_opened(now);
        let expired = self.use_state.change(|usage| match over(usage, since_opened, timeouts) {
            Some(reason) => (State::Ended, Life::JustEnded(reason)),
            None => (State::Active(usage), Life::Active),
        });
        expired.unwrap_or(Life::Ended)
    }

    /// Whether the session's time is over.
    pub(crate) fn is_over(&self, now: Duration, timeouts: Timeouts) -> bool {
        let since_opened = self.since_opened(now);
        matches!(self.use_state.load(), State::Active(usage) if over(usage, since_opened, timeouts).is_some())
    }

    /// Ends the session, in use or not. Whether it ended by this call: then the caller must remove it from the store.
    pub(crate) fn end(&self) -> bool {
        self.use_state.change(|_| (State::Ended, ())).is_some()
    }

    /// Ends the session if it is not in use and was not used after `last_used`.
    pub(crate) fn evict(&self, last_used: u64) -> Eviction {
        let State::Active(usage) = self.use_state.load() else { return Eviction::Ended };
        let used = self.opened.saturating_add(usage.last_used);
        if usage.uses > 0 {
            Eviction::InUse
        } else if used > last_used || !self.use_state.end_unchanged(usage) {
            Eviction::UsedSince(used)
        } else {
            Eviction::JustEnded
        }
    }

    /// Why the time of a session is over that is not in use and was last used at this moment; `None` when it is not.
    pub(crate) fn over_when_unused(&self, last_used: u64, now: Duration, timeouts: Timeouts) -> Option<EndReason> {
        let usage = Usage { last_used: last_used.saturating_sub(self.opened), uses: 0 };
        over(usage, self.since_opened(now), timeouts)
    }

    pub(crate) fn position(&self) -> usize {
        self.position.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn set_position(&self, position: usize) {
        // Memory ends long before: a session takes hundreds of bytes.
        self.position.store(u32::try_from(position).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    fn since_opened(&self, now: Duration) -> u64 {
        millis(now).saturating_sub(self.opened)
    }
}

/// Why the time of a session is over that was opened so many milliseconds ago; `None` when it is not.
fn over(usage: Usage, since_opened: u64, timeouts: Timeouts) -> Option<EndReason> {
    if since_opened >= timeouts.lifetime {
        Some(EndReason::Lifetime)
    } else if usage.uses == 0 && since_opened.saturating_sub(usage.last_used) >= timeouts.idle {
        Some(EndReason::Idle)
    } else {
        None
    }
}

/// Milliseconds, saturating.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionKey;

    const TIMEOUTS: Timeouts = Timeouts { idle: 60_000, lifetime: 600_000 };

    fn opened_at(now: Duration) -> Session {
        let resource = ResourceUri::parse("https://r.example/mcp").unwrap();
        let name = Name::build(&SessionKey::new(1, [5; 16]), &resource, Owner::Anonymous, &[7; 16]);
        let record = Record {
            name,
            authorization: 0,
            log_hash: 0,
            resource,
            owner: None,
            backend: Box::default(),
            protocol_version: None,
        };
        Session::new(record, now)
    }

    #[test]
    fn one_value_is_attached() {
        let session = opened_at(Duration::ZERO);
        assert_eq!(session.attachment::<u8>(), None);
        assert_eq!((session.attach(|| 1_u8), session.attach(|| 2_u8)), (Some(&1), Some(&1)));
        assert_eq!(
            (session.attachment::<u8>(), session.attachment::<u16>(), session.attach(|| 3_u16)),
            (Some(&1), None, None)
        );
    }

    #[test]
    fn times_saturate() {
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(millis(Duration::from_secs(2)), 2000);
        let session = opened_at(Duration::MAX);
        assert_eq!(session.leave_use(Duration::MAX, TIMEOUTS), Life::Active);
        assert_eq!(session.last_used(), Some(u64::MAX));
        assert_eq!(session.evict(u64::MAX), Eviction::JustEnded);
    }

    /// E9: to ask whether the time of a session is over is no use of it.
    #[test]
    fn a_sweep_is_no_use() {
        let session = opened_at(Duration::ZERO);
        assert_eq!(session.leave_use(Duration::ZERO, TIMEOUTS), Life::Active);
        assert_eq!(session.expire(Duration::from_secs(59), TIMEOUTS), Life::Active);
        assert!(session.is_over(Duration::from_secs(60), TIMEOUTS));
        assert_eq!(session.take_into_use(Duration::from_secs(59), TIMEOUTS), Life::Active);
        assert!(!session.is_over(Duration::from_secs(60), TIMEOUTS));
    }

    /// E9: an eviction ends only a session that is not in use and was not used since it was chosen.
    #[test]
    fn what_is_evicted() {
        let session = opened_at(Duration::from_secs(1));
        assert_eq!(session.evict(u64::MAX), Eviction::InUse);
        assert_eq!(session.leave_use(Duration::from_secs(3), TIMEOUTS), Life::Active);
        assert_eq!(session.last_used(), Some(3000));
        assert_eq!(session.evict(2999), Eviction::UsedSince(3000));
        assert_eq!(session.evict(3000), Eviction::JustEnded);
        assert_eq!(session.evict(3000), Eviction::Ended);
        assert_eq!((session.last_used(), session.end()), (None, false));
        assert_eq!(session.take_into_use(Duration::from_secs(3), TIMEOUTS), Life::Ended);
        assert_eq!(session.leave_use(Duration::from_secs(3), TIMEOUTS), Life::Ended);
    }
}
