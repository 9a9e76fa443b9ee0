//! [`SessionStore`]: the sessions of one process, in a bounded table.

mod adoption;
mod announcing;
mod builder;
mod capacity;
mod confirming;
mod ending;
mod in_use;
mod last_use_heap;
mod listing;
mod opened_sessions;
mod recording;
mod reservation;
mod resolving;
mod rotation;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use portcullis_metadata::{Clock, Scopes};

pub use self::{
    builder::SessionStoreBuilder,
    confirming::EndRecord,
    ending::EndedScope,
    in_use::InUse,
    listing::{ListedSession, SessionPage},
    reservation::{CapacityPermit, Reservation},
};
use self::{capacity::Capacity, opened_sessions::OpenedSessions};
use crate::{
    ends::{Ends, EndsLimits},
    error::ReservationError,
    identifier::{RandomPart, SessionId, SessionKeys},
    journal::SessionJournal,
    last_uses::LastUses,
    live_session::{Session, Timeouts, millis},
    observer::SessionObserver,
    owner::Owner,
    peer_sessions::PeerSessions,
    scope::SessionTarget,
    settings::SessionSettings,
};

/// The sessions of one process. Clones share the store.
///
/// **Table.** At [`SessionSettings::max_total`], new sessions are rejected. At
/// [`SessionSettings::max_per_owner`], a new session evicts the owner's least recently used session
/// that is not in use. At [`SessionSettings::max_per_subject`], new sessions of a subject are
/// rejected, whichever client has them. Sessions at other processes count for owner and subject as
/// far as a [`SessionJournal`] announces them; each process allows an owner at least one session.
///
/// **Adoption.** Identifiers are sealed. With the key, the store adopts a session that another
/// process opened, or this one before a restart. An adopted session takes capacity like a new one.
///
/// **Ends.** The store remembers which sessions have ended, so that no process continues them,
/// until their lifetime is over: 256 sessions of an owner (65,536 without authentication),
/// 1,000,000 in total, and those of 250,000 owners. When an owner exceeds the first limit, or ends
/// a session at the second one, the owner's oldest sessions end, too
/// ([`EndReason::Overflow`](crate::EndReason::Overflow)). At the third limit, the oldest sessions
/// of all owners end.
///
/// **Journal.** A [`SessionJournal`] keeps ends and last uses outside this process.
#[derive(Clone)]
pub struct SessionStore(Arc<Inner>);

struct Inner {
    keys: ArcSwap<SessionKeys>,
    /// Counts the key lists, up to
    /// [`UNCACHED_GENERATION`](crate::live_session::UNCACHED_GENERATION). It changes after `keys`.
    key_generation: AtomicU16,
    timeouts: Timeouts,
    /// The maximum age at which a session without a known use is adopted, in milliseconds.
    unused_timeout: u64,
    /// Whether other processes can use the sessions at the same time.
    has_peers: bool,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    journal: Arc<dyn SessionJournal>,
    capacity: Capacity,
    /// The sessions by their stable ids, which are the random parts of their first identifiers.
    table: DashMap<SessionId, Arc<Session>>,
    /// The sessions by the random parts of their later identifiers.
    rotated: DashMap<RandomPart, resolving::Found>,
    ends: Ends,
    last_uses: LastUses,
    peer_sessions: PeerSessions,
    opened: OpenedSessions,
    /// When the last uses were last recorded, in milliseconds of the monotonic clock.
    last_uses_recorded: AtomicU64,
    /// Whether [`SessionObserver::not_sealed`] has been called.
    has_unsealed: AtomicBool,
}

/// The maximum number of sessions that one sweep ends, because the observer may take time for each.
const SWEEP_BATCH: usize = 1024;

impl SessionStore {
    /// How often [`sweep`](Self::sweep) should be called: 5 s.
    pub const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

    /// The maximum difference between the clocks of two processes that is tolerated: 5 s.
    pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);

    /// How far the creation time of a session can be ahead of this process's clock: 11 s, twice the
    /// maximum difference and 1 s. A floor is ahead of the clock of the process that raises it by
    /// the difference, and that clock can be ahead by as much. New sessions are created 1 ms above
    /// it, as are further floors.
    ///
    /// An identifier with a later creation time is unknown, and so is the end of its session. A
    /// later floor counts as one at this limit. Otherwise none of them would ever expire.
    pub const MAX_AHEAD: Duration = Self::MAX_CLOCK_DIFFERENCE
        .saturating_mul(2)
        .saturating_add(Duration::from_secs(1));

    /// Starts a builder. Without further settings, the store uses the system's clock, and keeps
    /// nothing outside the process.
    pub fn builder(settings: SessionSettings) -> SessionStoreBuilder {
        SessionStoreBuilder::new(settings)
    }

    fn new(
        settings: SessionSettings,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn SessionObserver>,
        journal: Arc<dyn SessionJournal>,
        limits: EndsLimits,
    ) -> Self {
        let max_per_subject = settings.subject_limit();
        let SessionSettings {
            idle_timeout,
            lifetime,
            max_total,
            max_per_owner,
            max_per_subject: _,
            keys,
        } = settings;
        let peer_delay = journal.peer_delay();
        let timeouts = Timeouts::new(idle_timeout.saturating_add(peer_delay), lifetime);
        Self(Arc::new(Inner {
            keys: ArcSwap::from_pointee(keys),
            key_generation: AtomicU16::new(1),
            timeouts,
            unused_timeout: millis(idle_timeout),
            has_peers: !peer_delay.is_zero(),
            last_uses_recorded: AtomicU64::new(0),
            clock,
            observer,
            journal,
            capacity: Capacity::new(max_total, max_per_owner, max_per_subject),
            table: DashMap::new(),
            rotated: DashMap::new(),
            ends: Ends::new(limits, timeouts.lifetime),
            last_uses: LastUses::new(max_total.saturating_mul(2)),
            peer_sessions: PeerSessions::new(max_total.saturating_mul(2)),
            opened: OpenedSessions::default(),
            has_unsealed: AtomicBool::new(false),
        }))
    }

    /// Replaces the keys. Identifiers of keys that are not in the new list are unknown from now on.
    pub fn set_keys(&self, keys: SessionKeys) {
        self.0.keys.store(Arc::new(keys));
        // The count stops at `UNCACHED_GENERATION`.
        let next = |generation: u16| generation.checked_add(1);
        let _ = self
            .0
            .key_generation
            .fetch_update(Ordering::Release, Ordering::Relaxed, next);
    }

    /// Reserves capacity for a session until the reservation is opened or dropped. `scopes` are
    /// those of the caller's token; see [`InUse::rotated_identifier`].
    ///
    /// A reservation ends no session. It requires that the owner has a session that is not in use
    /// for each of its reservations that would exceed [`SessionSettings::max_per_owner`], so that
    /// this session can be evicted.
    ///
    /// # Errors
    /// Fails at a limit, or if the operating system returns no random bytes.
    pub fn reserve(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        scopes: &Scopes,
    ) -> Result<Reservation, ReservationError> {
        let permit = CapacityPermit::reserve(&self.0, owner, None)?;
        let mut id = SessionId::default();
        getrandom::fill(&mut id).map_err(|_| ReservationError::NoRandomness)?;
        let key = self.0.keys.load().current().clone();
        let fingerprint = key.scopes_fingerprint(scopes);
        Ok(Reservation {
            permit,
            target: target.clone(),
            key,
            id,
            fingerprint,
        })
    }

    /// Returns all sessions in the table in any order, for example to end them at a shutdown.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.0
            .table
            .iter()
            .map(|stored| Arc::clone(&stored))
            .collect()
    }

    /// Ends expired sessions, and releases those that are idle here and were used by another
    /// process. Returns the number of both: at most 1,024, so there may be more.
    ///
    /// Call this periodically. [`resolve`](Self::resolve) also checks the timeouts of its session.
    pub fn sweep(&self) -> usize {
        let now = self.0.clock.read();
        let timeouts = self.0.timeouts;
        let expired: Vec<_> = self
            .0
            .table
            .iter()
            .filter(|stored| stored.expired(now.monotonic, timeouts).is_some())
            .take(SWEEP_BATCH)
            .map(|stored| Arc::clone(&stored))
            .collect();
        // A session may have been used or ended in the meantime.
        let ended = expired
            .iter()
            .filter(|session| self.0.expire(session, now.monotonic))
            .count();
        self.0.end_retired_generations(now.monotonic);
        self.0.ends.prune(now.unix);
        self.0.peer_sessions.prune(now.monotonic);
        self.0.last_uses.prune(
            now.unix
                .saturating_sub(Duration::from_millis(timeouts.idle)),
        );
        ended
    }

    /// Returns the number of sessions in the table, without reservations.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod replica_tests;
#[cfg(test)]
mod tests;
