//! The ends of sessions, which outlive the sessions: tombstones and floors, within bounds.

mod scope_ends;
mod subjects;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use dashmap::DashMap;
use portcullis_metadata::UnixTime;

use self::scope_ends::{ScopeEnds, Tombstone};
use crate::{
    fault_injection::{Fault, is_injected},
    identifier::SessionId,
    journal::{EndExtent, SessionEnd},
    owner::Owner,
    scope::{EndScope, ScopeId, SessionTarget},
};

/// The sessions that have ended, so that their identifiers do not open them again.
///
/// A *tombstone* ends one session of an owner. It is kept until the session's lifetime is over. A
/// *floor* ends all sessions of a scope that were created up to a certain time.
///
/// When a table is full, a floor replaces tombstones:
/// - An owner with too many tombstones gets a floor, which replaces those of its oldest sessions.
///   With too many tombstones in total, this happens to the owner of the session that ends.
/// - A subject with too many owners gets a floor, which replaces the ends of those whose ended
///   sessions are oldest. Only ends that this process records count, because those of other
///   processes do not name the subject.
/// - With too many scopes, a floor for all sessions replaces the scopes whose ended sessions are
///   oldest.
///
/// A floor is stored as the time from which on sessions are valid, which is 1 ms after the creation
/// of the youngest session that it ends. All times are in milliseconds of Unix time.
pub(crate) struct Ends {
    limits: EndsLimits,
    /// The lifetime of sessions in milliseconds.
    lifetime: u64,
    /// The scope of [`Owner::Anonymous`].
    anonymous: ScopeId,
    scopes: DashMap<ScopeId, ScopeEnds>,
    /// The owners of each subject whose ends this process has recorded.
    subjects: DashMap<ScopeId, BTreeSet<ScopeId>>,
    /// The number of tombstones in all scopes.
    tombstones: AtomicUsize,
    /// Whether a [wide](ScopeId::is_wide) scope ever had a floor.
    has_wide: AtomicBool,
    /// The floor of all sessions.
    valid_from: AtomicU64,
    /// The highest floor of all sessions that a journal has recorded.
    recorded_from: AtomicU64,
    /// The highest floor that any scope ever had. A new session is created above its floors, so its
    /// creation time can be ahead of the clock, up to this time.
    highest_floor: AtomicU64,
    last_prune: AtomicU64,
}

/// The maximum sizes of the tables.
#[derive(Clone, Copy)]
pub(crate) struct EndsLimits {
    /// Tombstones of one owner.
    pub(crate) per_owner: usize,
    /// Tombstones of all callers without authentication together.
    pub(crate) anonymous: usize,
    /// Owners of one subject, that is, its clients.
    pub(crate) owners_per_subject: usize,
    /// Tombstones in total.
    pub(crate) tombstones: usize,
    /// Scopes with a tombstone or a floor.
    pub(crate) scopes: usize,
}

/// The minimum time between two searches for expired entries, in milliseconds.
const PRUNE_INTERVAL: u64 = 60_000;

/// The floors that were raised because a table was full. Each is the creation time of the youngest
/// sessions that it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RaisedFloors {
    pub(crate) owner: Option<UnixTime>,
    /// The scope of the owner's subject, and its floor.
    pub(crate) subject: Option<(ScopeId, UnixTime)>,
    pub(crate) global: Option<UnixTime>,
}

/// An end that includes an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncludingEnd {
    pub(crate) end: SessionEnd,
    /// Whether a journal has confirmed it to this process.
    pub(crate) is_recorded: bool,
}

impl IncludingEnd {
    fn floor(scope: Option<ScopeId>, valid_from: u64, is_recorded: bool) -> Self {
        let created = UnixTime::from_millis(valid_from.saturating_sub(1));
        Self {
            end: SessionEnd::Floor { scope, created },
            is_recorded,
        }
    }
}

impl EndsLimits {
    pub(crate) const DEFAULT: Self = Self {
        per_owner: 256,
        anonymous: 65_536,
        owners_per_subject: 256,
        tombstones: 1_000_000,
        scopes: 250_000,
    };
}

impl Ends {
    pub(crate) fn new(limits: EndsLimits, lifetime: u64) -> Self {
        Self {
            limits,
            lifetime,
            anonymous: ScopeId::of_owner(Owner::Anonymous),
            scopes: DashMap::new(),
            subjects: DashMap::new(),
            tombstones: AtomicUsize::new(0),
            has_wide: AtomicBool::new(false),
            valid_from: AtomicU64::new(0),
            recorded_from: AtomicU64::new(0),
            highest_floor: AtomicU64::new(0),
            last_prune: AtomicU64::new(0),
        }
    }

    /// Returns whether an identifier of this session has ended: by a floor, or by a tombstone of
    /// the session or its older generations.
    pub(crate) fn contains(
        &self,
        owner: Owner<'_>,
        target: &SessionTarget,
        session: &SessionId,
        created: UnixTime,
        generation: u32,
    ) -> bool {
        if is_injected(Fault::IgnoredTombstones) {
            return false;
        }
        let created = created.as_millis();
        created < self.valid_from.load(Ordering::Acquire)
            || created < self.wide_floor(owner, target)
            || self
                .scopes
                .get(&ScopeId::of_owner(owner))
                .is_some_and(|ends| ends.contains(created, session, generation))
    }

    /// Returns the end that includes an identifier of this session, if it has ended: one that is
    /// recorded, if there is one.
    pub(crate) fn including(
        &self,
        owner: Owner<'_>,
        target: &SessionTarget,
        session: &SessionId,
        created: UnixTime,
        generation: u32,
    ) -> Option<IncludingEnd> {
        let created = created.as_millis();
        let global = self.valid_from.load(Ordering::Acquire);
        let of_all = (created < global).then(|| {
            IncludingEnd::floor(
                None,
                global,
                created < self.recorded_from.load(Ordering::Acquire),
            )
        });
        let in_scope = |id| {
            self.scopes
                .get(&id)?
                .including(id, created, session, generation)
        };
        let of_owner = in_scope(ScopeId::of_owner(owner));
        let of_wide = EndScope::wide(owner, target).filter_map(|scope| in_scope(scope.id()));
        let mut ends = of_owner.into_iter().chain(of_all).chain(of_wide);
        let first = ends.next()?;
        if first.is_recorded {
            Some(first)
        } else {
            ends.find(|end| end.is_recorded).or(Some(first))
        }
    }

    /// Returns whether the owner ended this session, as far as a tombstone says so.
    pub(crate) fn is_ended_by_owner(
        &self,
        owner: Owner<'_>,
        session: &SessionId,
        created: UnixTime,
    ) -> bool {
        self.scopes
            .get(&ScopeId::of_owner(owner))
            .is_some_and(|ends| {
                ends.tombstone(created.as_millis(), session)
                    .is_some_and(|tombstone| tombstone.extent() == EndExtent::ByOwner)
            })
    }

    /// Marks an end as recorded. It may have been replaced by a higher floor, which is not recorded
    /// then.
    pub(crate) fn set_recorded(&self, end: &SessionEnd) {
        match *end {
            SessionEnd::Session {
                owner,
                session,
                created,
                extent,
            } => {
                let lowest = extent.lowest_generation();
                if let Some(mut ends) = self.scopes.get_mut(&owner) {
                    ends.set_recorded(created.as_millis(), &session, lowest);
                }
            }
            SessionEnd::Floor {
                scope: Some(scope),
                created,
            } => {
                if let Some(mut ends) = self.scopes.get_mut(&scope) {
                    ends.set_floor_recorded(created.as_millis().saturating_add(1));
                }
            }
            SessionEnd::Floor {
                scope: None,
                created,
            } => {
                self.recorded_from
                    .fetch_max(created.as_millis().saturating_add(1), Ordering::AcqRel);
            }
        }
    }

    /// Returns the creation time of a new session: now, or the time above its floors if one of them
    /// is in the future.
    pub(crate) fn next_creation(
        &self,
        owner: Owner<'_>,
        target: &SessionTarget,
        now: UnixTime,
    ) -> UnixTime {
        let owner_floor = self
            .scopes
            .get(&ScopeId::of_owner(owner))
            .map_or(0, |ends| ends.valid_from());
        let floor = owner_floor
            .max(self.wide_floor(owner, target))
            .max(self.valid_from.load(Ordering::Acquire));
        UnixTime::from_millis(floor.max(now.as_millis()))
    }

    /// Returns a floor that includes all sessions that exist now, if no clock is ahead of
    /// `latest_now`.
    pub(crate) fn floor_above_all(&self, latest_now: UnixTime) -> UnixTime {
        latest_now.max(UnixTime::from_millis(
            self.highest_floor.load(Ordering::Acquire),
        ))
    }

    /// Adds the tombstone of a session, or of its older generations. Returns the floors that this
    /// raised.
    pub(crate) fn add(
        &self,
        owner: ScopeId,
        session: SessionId,
        created: UnixTime,
        extent: EndExtent,
        now: UnixTime,
    ) -> RaisedFloors {
        let created = created.as_millis();
        let oldest = self.oldest_creation(now);
        if created < oldest {
            return RaisedFloors::default();
        }
        let mut ends = self.scopes.entry(owner).or_default();
        let before = ends.tombstones().len();
        ends.remove_before(oldest);
        ends.insert(Tombstone {
            created,
            session,
            lowest_generation: extent.lowest_generation(),
            recorded_below: 0,
        });
        let limit = if owner == self.anonymous {
            self.limits.anonymous
        } else {
            self.limits.per_owner
        };
        let count = ends.tombstones().len();
        let total = self
            .tombstones
            .load(Ordering::Acquire)
            .saturating_sub(before)
            + count;
        let owner_floor = if count > limit || total > self.limits.tombstones {
            self.replace_oldest(&mut ends, limit)
        } else {
            None
        };
        self.update_count(before, ends.tombstones().len());
        drop(ends);
        RaisedFloors {
            owner: owner_floor,
            subject: None,
            global: self.limit_scopes(oldest),
        }
    }

    /// Ends all sessions of a scope that were created no later than `created`. Without a scope,
    /// ends those of all scopes. Returns the other floors that this raised.
    pub(crate) fn raise(
        &self,
        scope: Option<ScopeId>,
        created: UnixTime,
        now: UnixTime,
    ) -> RaisedFloors {
        let valid_from = created.as_millis().saturating_add(1);
        self.highest_floor.fetch_max(valid_from, Ordering::AcqRel);
        let Some(scope) = scope else {
            self.valid_from.fetch_max(valid_from, Ordering::AcqRel);
            return RaisedFloors::default();
        };
        if scope.is_wide() {
            self.has_wide.store(true, Ordering::Release);
        }
        let mut ends = self.scopes.entry(scope).or_default();
        let before = ends.tombstones().len();
        ends.raise(valid_from);
        self.update_count(before, ends.tombstones().len());
        drop(ends);
        RaisedFloors {
            owner: None,
            subject: None,
            global: self.limit_scopes(self.oldest_creation(now)),
        }
    }

    /// Returns whether a floor of the scope, or without a scope that of all sessions, ends the
    /// sessions that were created no later than `created`.
    pub(crate) fn has_floor(&self, scope: Option<ScopeId>, created: UnixTime) -> bool {
        let valid_from = match scope {
            Some(scope) => self.scopes.get(&scope).map_or(0, |ends| ends.valid_from()),
            None => self.valid_from.load(Ordering::Acquire),
        };
        created.as_millis() < valid_from
    }

    /// Removes expired entries, at most once a minute.
    pub(crate) fn prune(&self, now: UnixTime) {
        let last = self.last_prune.load(Ordering::Relaxed);
        let now_millis = now.as_millis();
        if now_millis.abs_diff(last) < PRUNE_INTERVAL {
            return;
        }
        self.last_prune.store(now_millis, Ordering::Relaxed);
        self.remove_before(self.oldest_creation(now));
    }

    /// Returns all tombstones and floors.
    pub(crate) fn all(&self) -> Vec<SessionEnd> {
        let floor = |scope, valid_from: u64| {
            let created = UnixTime::from_millis(valid_from.checked_sub(1)?);
            Some(SessionEnd::Floor { scope, created })
        };
        let mut all: Vec<_> = floor(None, self.valid_from.load(Ordering::Acquire))
            .into_iter()
            .collect();
        for entry in &self.scopes {
            all.extend(floor(Some(*entry.key()), entry.valid_from()));
            all.extend(
                entry
                    .tombstones()
                    .iter()
                    .map(|tombstone| tombstone.to_end(*entry.key())),
            );
        }
        all
    }

    /// Returns the highest floor of the wide scopes that contain this owner's sessions at this
    /// target; 0 if there is none.
    fn wide_floor(&self, owner: Owner<'_>, target: &SessionTarget) -> u64 {
        if !self.has_wide.load(Ordering::Acquire) {
            return 0;
        }
        let floor = |scope: EndScope<'_>| {
            self.scopes
                .get(&scope.id())
                .map_or(0, |ends| ends.valid_from())
        };
        EndScope::wide(owner, target).map(floor).max().unwrap_or(0)
    }

    /// Returns the creation time of the oldest sessions whose lifetime is not over.
    fn oldest_creation(&self, now: UnixTime) -> u64 {
        now.as_millis()
            .saturating_add(1)
            .saturating_sub(self.lifetime)
    }

    /// Replaces the tombstones of an owner's oldest sessions by a floor, and returns it. Of many
    /// tombstones, replaces several, so that this is rare.
    fn replace_oldest(&self, ends: &mut ScopeEnds, limit: usize) -> Option<UnixTime> {
        let last_replaced = (limit / 1024).min(ends.tombstones().len().checked_sub(1)?);
        let created = ends.tombstones()[last_replaced].created;
        let valid_from = created.saturating_add(1);
        if is_injected(Fault::MissingFloor) {
            ends.remove_before(valid_from);
            return None;
        }
        ends.raise(valid_from);
        self.highest_floor.fetch_max(valid_from, Ordering::AcqRel);
        Some(UnixTime::from_millis(created))
    }

    /// Replaces the oldest scopes by a floor for all sessions if there are too many, and returns
    /// the floor. Expired entries are removed first.
    fn limit_scopes(&self, oldest: u64) -> Option<UnixTime> {
        if self.scopes.len() <= self.limits.scopes {
            return None;
        }
        self.remove_before(oldest);
        let mut floors: Vec<u64> = self
            .scopes
            .iter()
            .map(|ends| ends.including_floor())
            .collect();
        let excess = floors.len().saturating_sub(self.limits.scopes);
        if excess == 0 {
            return None;
        }
        // A quarter of the limit at once, so that this is rare.
        let last_replaced = (excess + self.limits.scopes / 4).min(floors.len()) - 1;
        let valid_from = *floors.select_nth_unstable(last_replaced).1;
        self.valid_from.fetch_max(valid_from, Ordering::AcqRel);
        self.highest_floor.fetch_max(valid_from, Ordering::AcqRel);
        self.remove_before(valid_from);
        valid_from.checked_sub(1).map(UnixTime::from_millis)
    }

    /// Removes the entries that concern only sessions that were created before `time`.
    fn remove_before(&self, time: u64) {
        self.scopes.retain(|_, ends| {
            let before = ends.tombstones().len();
            ends.remove_before(time);
            self.update_count(before, ends.tombstones().len());
            ends.valid_from() > time || !ends.tombstones().is_empty()
        });
        self.remove_unused_subjects();
    }

    /// Updates the total after the number of tombstones of a scope has changed.
    fn update_count(&self, before: usize, after: usize) {
        if after >= before {
            self.tombstones.fetch_add(after - before, Ordering::AcqRel);
        } else {
            self.tombstones.fetch_sub(before - after, Ordering::AcqRel);
        }
    }
}
