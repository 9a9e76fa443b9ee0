//! The ends that outlive their sessions: tombstones and floors, bounded.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use dashmap::DashMap;
use portcullis_metadata::UnixTime;

use crate::{
    identifier::SessionId,
    journal::SessionEnd,
    owner::Owner,
    planted::{Fault, is_planted},
    scope::{EndScope, ScopeId, SessionTarget},
};

/// Remembers which sessions have ended, so that their identifiers do not open new ones.
///
/// A tombstone names a session, until the session's lifetime is over. An owner has at most
/// [`per_owner`](EndsLimits::per_owner) tombstones. Beyond that, the tombstone of the session that was created first becomes the
/// owner's floor: sessions created no later have ended. The same happens to the owner that ends a session when there are too
/// many tombstones in total. Only if there are too many owners, a floor for all sessions replaces the entries of those whose
/// ended sessions were created first.
///
/// Times are in milliseconds of Unix time. A floor is stored as the creation time of the oldest sessions that have not ended.
pub(crate) struct Ends {
    limits: EndsLimits,
    lifetime: u64,
    anonymous: ScopeId,
    scopes: DashMap<ScopeId, ScopeEnds>,
    tombstones: AtomicUsize,
    /// Whether a scope beside owners ever had a floor.
    has_wide: AtomicBool,
    global_minimum: AtomicU64,
    /// The highest minimum of any scope ever. New sessions can have creation times up to it that are ahead of the clock.
    highest_minimum: AtomicU64,
    last_prune: AtomicU64,
}

/// The bounds of the tables.
#[derive(Clone, Copy)]
pub(crate) struct EndsLimits {
    pub(crate) per_owner: usize,
    /// The limit for all callers without authentication together.
    pub(crate) anonymous: usize,
    pub(crate) tombstones: usize,
    pub(crate) scopes: usize,
}

/// The floor and the tombstones of one scope. Only owners have tombstones.
#[derive(Default)]
struct ScopeEnds {
    minimum: u64,
    /// Ordered by creation time and session.
    tombstones: VecDeque<Tombstone>,
}

#[derive(Clone, Copy)]
struct Tombstone {
    created: u64,
    session: SessionId,
    /// The lowest generation that is still valid.
    lowest: u32,
}

/// The lowest valid generation of a session that has ended. No session has so many.
pub(crate) const ALL_GENERATIONS: u32 = u32::MAX;

/// The minimum time between two searches for expired entries, in milliseconds.
const PRUNE_INTERVAL: u64 = 60_000;

/// The floors that rose because a table was full.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Risen {
    pub(crate) owner: Option<UnixTime>,
    pub(crate) global: Option<UnixTime>,
}

impl EndsLimits {
    pub(crate) const DEFAULT: Self = Self { per_owner: 256, anonymous: 65_536, tombstones: 1_000_000, scopes: 250_000 };
}

impl Ends {
    pub(crate) fn new(limits: EndsLimits, lifetime: u64) -> Self {
        Self {
            limits,
            lifetime,
            anonymous: ScopeId::of_owner(Owner::Anonymous),
            scopes: DashMap::new(),
            tombstones: AtomicUsize::new(0),
            has_wide: AtomicBool::new(false),
            global_minimum: AtomicU64::new(0),
            highest_minimum: AtomicU64::new(0),
            last_prune: AtomicU64::new(0),
        }
    }

    /// Returns whether this identifier has ended: by a floor, or by a tombstone of its session.
    pub(crate) fn contains(
        &self,
        owner: Owner<'_>,
        target: &SessionTarget,
        session: &SessionId,
        created: UnixTime,
        generation: u32,
    ) -> bool {
        if is_planted(Fault::IgnoredTombstones) {
            return false;
        }
        let created = created.as_millis();
        let is_owner_ended = || {
            self.scopes.get(&ScopeId::of_owner(owner)).is_some_and(|ends| {
                created < ends.minimum
                    || ends.lowest_generation(created, session).is_some_and(|lowest| generation < lowest)
            })
        };
        created < self.global_minimum.load(Ordering::Acquire)
            || created < self.wider_minimum(owner, target)
            || is_owner_ended()
    }

    /// Returns the earliest creation time of a session that has not ended, at least `now`.
    pub(crate) fn next_creation(&self, owner: Owner<'_>, target: &SessionTarget, now: UnixTime) -> UnixTime {
        let of_owner = self.scopes.get(&ScopeId::of_owner(owner)).map_or(0, |ends| ends.minimum);
        let minimum = of_owner.max(self.wider_minimum(owner, target)).max(self.global_minimum.load(Ordering::Acquire));
        UnixTime::from_millis(minimum.max(now.as_millis()))
    }

    /// Returns a floor above all sessions that exist now, if no clock is ahead of `latest_now`.
    pub(crate) fn floor_above_all(&self, latest_now: UnixTime) -> UnixTime {
        latest_now.max(UnixTime::from_millis(self.highest_minimum.load(Ordering::Acquire)))
    }

    /// Adds the tombstone of a session, or of its generations below `lowest`.
    pub(crate) fn add(
        &self,
        owner: ScopeId,
        session: SessionId,
        created: UnixTime,
        lowest: u32,
        now: UnixTime,
    ) -> Risen {
        let mut risen = Risen::default();
        let (created, oldest) = (created.as_millis(), self.oldest(now));
        if created < oldest {
            return risen;
        }
        let mut ends = self.scopes.entry(owner).or_default();
        let before = ends.tombstones.len();
        ends.remove_before(oldest);
        ends.insert(Tombstone { created, session, lowest });
        let others = self.tombstones.load(Ordering::Acquire).saturating_sub(before);
        let limit = if owner == self.anonymous { self.limits.anonymous } else { self.limits.per_owner };
        if ends.tombstones.len() > limit || others + ends.tombstones.len() > self.limits.tombstones {
            // Several at once where there are many, so that this is rare.
            let last = (limit / 1024).min(ends.tombstones.len() - 1);
            let created = ends.tombstones[last].created;
            if is_planted(Fault::MissingFloor) {
                ends.tombstones.drain(..=last);
                return risen;
            }
            let minimum = created.saturating_add(1);
            ends.raise(minimum);
            self.highest_minimum.fetch_max(minimum, Ordering::AcqRel);
            risen.owner = Some(UnixTime::from_millis(created));
        }
        self.count(before, ends.tombstones.len());
        drop(ends);
        risen.global = self.shrink(oldest);
        risen
    }

    /// Ends all sessions of a scope that were created no later than `created`. Without a scope, all sessions.
    pub(crate) fn raise(&self, scope: Option<ScopeId>, created: UnixTime, now: UnixTime) -> Risen {
        let minimum = created.as_millis().saturating_add(1);
        self.highest_minimum.fetch_max(minimum, Ordering::AcqRel);
        let Some(scope) = scope else {
            self.global_minimum.fetch_max(minimum, Ordering::AcqRel);
            return Risen::default();
        };
        if scope.is_wide() {
            self.has_wide.store(true, Ordering::Release);
        }
        let mut ends = self.scopes.entry(scope).or_default();
        let before = ends.tombstones.len();
        ends.raise(minimum);
        self.count(before, ends.tombstones.len());
        drop(ends);
        Risen { owner: None, global: self.shrink(self.oldest(now)) }
    }

    /// Returns whether a floor of the scope, or without a scope that of all sessions, ends the sessions that were created no
    /// later than `created`.
    pub(crate) fn has_floor(&self, scope: Option<ScopeId>, created: UnixTime) -> bool {
        let minimum = match scope {
            Some(scope) => self.scopes.get(&scope).map_or(0, |ends| ends.minimum),
            None => self.global_minimum.load(Ordering::Acquire),
        };
        created.as_millis() < minimum
    }

    /// Removes what has expired, at most once a minute.
    pub(crate) fn prune(&self, now: UnixTime) {
        let (last, now_millis) = (self.last_prune.load(Ordering::Relaxed), now.as_millis());
        if now_millis.abs_diff(last) < PRUNE_INTERVAL {
            return;
        }
        self.last_prune.store(now_millis, Ordering::Relaxed);
        self.remove_before(self.oldest(now));
    }

    /// Returns all tombstones and floors.
    pub(crate) fn all(&self) -> Vec<SessionEnd> {
        let floor = |scope, minimum: u64| {
            let created = UnixTime::from_millis(minimum.checked_sub(1)?);
            Some(SessionEnd::Floor { scope, created })
        };
        let mut all: Vec<_> = floor(None, self.global_minimum.load(Ordering::Acquire)).into_iter().collect();
        for entry in &self.scopes {
            all.extend(floor(Some(*entry.key()), entry.minimum));
            all.extend(entry.tombstones.iter().map(|tombstone| tombstone.to_end(*entry.key())));
        }
        all
    }

    fn wider_minimum(&self, owner: Owner<'_>, target: &SessionTarget) -> u64 {
        if !self.has_wide.load(Ordering::Acquire) {
            return 0;
        }
        let minimum = |scope: EndScope<'_>| self.scopes.get(&scope.id()).map_or(0, |ends| ends.minimum);
        EndScope::wider(owner, target).map(minimum).max().unwrap_or(0)
    }

    /// Returns the creation time of the oldest sessions whose lifetime is not over.
    fn oldest(&self, now: UnixTime) -> u64 {
        now.as_millis().saturating_add(1).saturating_sub(self.lifetime)
    }

    fn count(&self, before: usize, after: usize) {
        if after >= before {
            self.tombstones.fetch_add(after - before, Ordering::AcqRel);
        } else {
            self.tombstones.fetch_sub(before - after, Ordering::AcqRel);
        }
    }

    /// Makes room if there are too many scopes. Returns the global floor if it rose.
    fn shrink(&self, oldest: u64) -> Option<UnixTime> {
        if self.scopes.len() <= self.limits.scopes {
            return None;
        }
        self.remove_before(oldest);
        let mut minima: Vec<u64> = self.scopes.iter().map(|ends| ends.replacing_minimum()).collect();
        let excess = minima.len().saturating_sub(self.limits.scopes);
        if excess == 0 {
            return None;
        }
        // A quarter at once, so that this is rare.
        let last = (excess + self.limits.scopes / 4).min(minima.len()) - 1;
        let minimum = *minima.select_nth_unstable(last).1;
        self.global_minimum.fetch_max(minimum, Ordering::AcqRel);
        self.highest_minimum.fetch_max(minimum, Ordering::AcqRel);
        self.remove_before(minimum);
        minimum.checked_sub(1).map(UnixTime::from_millis)
    }

    /// Removes what concerns only sessions that were created before `minimum`.
    fn remove_before(&self, minimum: u64) {
        self.scopes.retain(|_, ends| {
            let before = ends.tombstones.len();
            ends.remove_before(minimum);
            self.count(before, ends.tombstones.len());
            ends.minimum > minimum || !ends.tombstones.is_empty()
        });
    }
}

impl ScopeEnds {
    fn position(&self, created: u64, session: &SessionId) -> Result<usize, usize> {
        self.tombstones.binary_search_by(|other| (other.created, &other.session).cmp(&(created, session)))
    }

    fn lowest_generation(&self, created: u64, session: &SessionId) -> Option<u32> {
        let position = self.position(created, session).ok()?;
        self.tombstones.get(position).map(|tombstone| tombstone.lowest)
    }

    fn insert(&mut self, tombstone: Tombstone) {
        if tombstone.created < self.minimum {
            return;
        }
        match self.position(tombstone.created, &tombstone.session) {
            Ok(known) => self.tombstones[known].lowest = self.tombstones[known].lowest.max(tombstone.lowest),
            Err(position) => self.tombstones.insert(position, tombstone),
        }
    }

    fn raise(&mut self, minimum: u64) {
        self.minimum = self.minimum.max(minimum);
        self.remove_before(self.minimum);
    }

    fn remove_before(&mut self, minimum: u64) {
        let removed = self.tombstones.partition_point(|tombstone| tombstone.created < minimum);
        self.tombstones.drain(..removed);
    }

    /// Returns the global minimum that could replace this entry.
    fn replacing_minimum(&self) -> u64 {
        self.tombstones.back().map_or(0, |newest| newest.created.saturating_add(1)).max(self.minimum)
    }
}

impl Tombstone {
    fn to_end(self, owner: ScopeId) -> SessionEnd {
        let Self { created, session, lowest } = self;
        let lowest_generation = (lowest != ALL_GENERATIONS).then_some(lowest);
        SessionEnd::Session { owner, session, created: UnixTime::from_millis(created), lowest_generation }
    }
}

#[cfg(test)]
mod tests;
