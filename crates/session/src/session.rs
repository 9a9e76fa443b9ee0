use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::ResourceUri;

use crate::{
    EndReason, Identifier, Owner,
    identifier::{Name, Random},
    lineage::{Lineage, Successor},
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
    /// The owner's encoding; nothing for [`Owner::Nobody`].
    owner: Option<Arc<[u8]>>,
    backend: Box<[u8]>,
    protocol_version: OnceLock<&'static str>,
    /// Milliseconds of the store's monotonic clock.
    opened: u64,
    /// The same of the last use, or [`ENDED`]. One atomic for both, so that a use and an end never both win.
    last_used: AtomicU64,
    /// How many uses are under way.
    in_use: AtomicU32,
    /// The number of the list of keys by which the first identifier was last found to be issued.
    proved: AtomicU32,
    /// What a layer above keeps beside the session.
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
}

const ENDED: u64 = u64::MAX;

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

/// How long sessions may go unused and live.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) idle: Duration,
    pub(crate) lifetime: Duration,
}

/// What a session is at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Active,
    /// It ended with this very look at it: whoever is told so has to remove it.
    JustExpired(EndReason),
    Ended,
}

impl Session {
    pub(crate) fn new(record: Record, now: Duration) -> Self {
        let Record { name, authorization, log_hash, resource, owner, backend, protocol_version } = record;
        let opened = millis(now);
        Self {
            first: name,
            later: OnceLock::new(),
            authorization,
            log_hash,
            resource,
            owner,
            backend,
            protocol_version: protocol_version.map(OnceLock::from).unwrap_or_default(),
            opened,
            last_used: AtomicU64::new(opened),
            in_use: AtomicU32::new(0),
            proved: AtomicU32::new(0),
            attachment: OnceLock::new(),
        }
    }

    /// The newest identifier that the session was given.
    pub fn identifier(&self) -> Identifier {
        self.successor().map_or(self.first, |newest| newest.name).identifier()
    }

    /// What the backend knows the session by, as given when it was opened.
    pub fn backend(&self) -> &[u8] {
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
    pub fn owned_by(&self) -> Owner<'_> {
        self.owner.as_deref().map_or(Owner::Nobody, Owner::decode)
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
        self.last_used.load(Ordering::Acquire) == ENDED
    }

    pub(crate) fn owner(&self) -> Option<&Arc<[u8]>> {
        self.owner.as_ref()
    }

    /// Whether this is its first identifier, and was found to be issued by the keys of this number: then its tag need not be
    /// computed again.
    pub(crate) fn is_proved(&self, name: &Name, keys_number: u32) -> bool {
        self.proved.load(Ordering::Relaxed) == keys_number && self.first.is(name)
    }

    /// Remembers that an identifier of this session was found to be issued.
    pub(crate) fn prove(&self, name: &Name, keys_number: u32) {
        if self.first.is(name) {
            self.proved.store(keys_number, Ordering::Relaxed);
        }
    }

    pub(crate) fn belongs_to(&self, resource: &ResourceUri, owner: Owner<'_>) -> bool {
        self.resource == *resource
            && match &self.owner {
                Some(encoded) => owner.is_encoded_as(encoded),
                None => owner == Owner::Nobody,
            }
    }

    /// Ends the session if its time is over, else counts this moment as a use.
    pub(crate) fn touch(&self, now: Duration, timeouts: Timeouts) -> Life {
        self.look(millis(now), timeouts, true)
    }

    /// Ends the session if its time is over.
    pub(crate) fn expire(&self, now: Duration, timeouts: Timeouts) -> Life {
        self.look(millis(now), timeouts, false)
    }

    /// Whether the session's time is over.
    pub(crate) fn is_over(&self, now: Duration, timeouts: Timeouts) -> bool {
        self.over(self.last_used.load(Ordering::Acquire), millis(now), timeouts).is_some()
    }

    pub(crate) fn take_into_use(&self) {
        self.in_use.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn leave_use(&self) {
        self.in_use.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn close(&self) {
        self.last_used.store(ENDED, Ordering::Release);
    }

    fn look(&self, now: u64, timeouts: Timeouts, touch: bool) -> Life {
        let mut last = self.last_used.load(Ordering::Acquire);
        loop {
            if last == ENDED {
                return Life::Ended;
            }
            let (next, life) = match self.over(last, now, timeouts) {
                Some(reason) => (ENDED, Life::JustExpired(reason)),
                None if touch => (last.max(now), Life::Active),
                None => (last, Life::Active),
            };
            // Most uses within a millisecond of another write nothing.
            if next == last {
                return life;
            }
            match self.last_used.compare_exchange_weak(last, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return life,
                Err(newer) => last = newer,
            }
        }
    }

    fn over(&self, last: u64, now: u64, timeouts: Timeouts) -> Option<EndReason> {
        if now.saturating_sub(self.opened) >= millis(timeouts.lifetime) {
            Some(EndReason::Lifetime)
        } else if now.saturating_sub(last) >= millis(timeouts.idle) && self.in_use.load(Ordering::Acquire) == 0 {
            Some(EndReason::Idle)
        } else {
            None
        }
    }
}

/// Milliseconds, never [`ENDED`].
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(ENDED - 1)
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

    #[test]
    fn no_time_is_taken_for_an_end() {
        for time in [Duration::MAX, Duration::from_millis(ENDED), Duration::from_millis(ENDED - 1)] {
            assert_eq!(millis(time), ENDED - 1);
        }
        assert_eq!(millis(Duration::from_secs(2)), 2000);
    }

    fn session() -> Session {
        let resource = ResourceUri::parse("https://r.example/mcp").unwrap();
        let name = Name::build(&SessionKey::new(1, [5; 16]), &resource, Owner::Nobody, &[7; 16]);
        let record = Record {
            name,
            authorization: 0,
            log_hash: 0,
            resource,
            owner: None,
            backend: Box::default(),
            protocol_version: None,
        };
        Session::new(record, Duration::ZERO)
    }

    #[test]
    fn one_value_is_attached() {
        let session = session();
        assert_eq!(session.attachment::<u8>(), None);
        assert_eq!((session.attach(|| 1_u8), session.attach(|| 2_u8)), (Some(&1), Some(&1)));
        assert_eq!(
            (session.attachment::<u8>(), session.attachment::<u16>(), session.attach(|| 3_u16)),
            (Some(&1), None, None)
        );
    }

    /// E9: to ask whether the time of a session is over is no use of it.
    #[test]
    fn a_sweep_is_no_use() {
        let session = session();
        let timeouts = Timeouts { idle: Duration::from_secs(60), lifetime: Duration::from_secs(600) };
        assert_eq!(session.expire(Duration::from_secs(59), timeouts), Life::Active);
        assert!(session.is_over(Duration::from_secs(60), timeouts));
        assert_eq!(session.touch(Duration::from_secs(59), timeouts), Life::Active);
        assert!(!session.is_over(Duration::from_secs(60), timeouts));
    }
}
