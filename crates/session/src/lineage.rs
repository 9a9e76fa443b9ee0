use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::identifier::{Name, Random};

/// A session gets a new identifier no more often.
const PERIOD: u64 = Duration::from_secs(60).as_millis() as u64;
/// How long an identifier goes on resolving after its successor's first use.
const GRACE: u64 = Duration::from_secs(5 * 60).as_millis() as u64;

/// The identifiers that a session was given after its first one. They are numbered: the first is 0, the first
/// successor 1. Times are milliseconds.
///
/// An identifier has at most one successor, and only an identifier that has been used gets one. Those that no longer
/// resolve are forgotten when the next one is added, so that there are never more than a few.
pub(crate) struct Lineage(Mutex<Vec<Successor>>);

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Successor {
    pub(crate) name: Name,
    pub(crate) number: u32,
    /// What the caller was allowed to do when it was made.
    pub(crate) authorization: u64,
    made: u64,
    first_used: Option<u64>,
}

impl Successor {
    pub(crate) fn new(name: Name, number: u32, authorization: u64, now: u64) -> Self {
        Self { name, number, authorization, made: now, first_used: None }
    }

    /// Whether it may get a successor already.
    pub(crate) fn may_be_followed(&self, now: u64) -> bool {
        self.first_used.is_some() && now.saturating_sub(self.made) >= PERIOD
    }

    fn retires_its_predecessor(&self, now: u64) -> bool {
        self.first_used.is_some_and(|used| now.saturating_sub(used) >= GRACE)
    }
}

impl Lineage {
    pub(crate) fn empty() -> Self {
        Self(Mutex::default())
    }

    /// The newest of them.
    pub(crate) fn newest(&self) -> Option<Successor> {
        self.lock().last().copied()
    }

    /// Whether the identifier of this number still resolves; if so, it has been used.
    pub(crate) fn use_number(&self, number: u32, now: u64) -> bool {
        let mut list = self.lock();
        if is_retired(&list, number, now) {
            return false;
        }
        if let Some(used) = list.iter_mut().find(|successor| successor.number == number) {
            used.first_used.get_or_insert(now);
        }
        true
    }

    /// Whether the identifier of this number no longer resolves.
    pub(crate) fn is_retired(&self, number: u32, now: u64) -> bool {
        is_retired(&self.lock(), number, now)
    }

    /// Adds a successor if it is still the next one and `may_be_added` agrees. What was forgotten comes back, else the
    /// successor that was not taken.
    pub(crate) fn add(
        &self,
        successor: Successor,
        now: u64,
        may_be_added: impl FnOnce() -> bool,
    ) -> Result<Vec<Random>, Random> {
        let mut list = self.lock();
        let newest = list.last().map_or(0, |newest| newest.number);
        if newest.checked_add(1) != Some(successor.number) || !may_be_added() {
            return Err(successor.name.random());
        }
        // The older ones retire first.
        let retired = list.iter().take_while(|old| is_retired(&list, old.number, now)).count();
        let forgotten = list.drain(..retired).map(|old| old.name.random()).collect();
        list.push(successor);
        Ok(forgotten)
    }

    /// All of them, forgotten here.
    pub(crate) fn take(&self) -> Vec<Random> {
        std::mem::take(&mut *self.lock()).iter().map(|successor| successor.name.random()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Successor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An identifier that is not the newest and whose successor is forgotten was forgotten, or is the first one, long ago.
fn is_retired(list: &[Successor], number: u32, now: u64) -> bool {
    if list.last().is_none_or(|newest| newest.number == number) {
        return false;
    }
    let next = list.iter().find(|successor| Some(successor.number) == number.checked_add(1));
    next.is_none_or(|next| next.retires_its_predecessor(now))
}
