//! [`Rechecks`]: the schedule of the watched tokens of one issuer.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_metadata::Clock;
use tokio::runtime::Handle;

use super::{TokenCheck, WatchedToken, confirmed_at};
use crate::{settings::IssuerSettings, token_hash::TokenHash, verified_token::VerifiedToken};

/// The interval if responses are not cached. An introspection for each event would be too much.
const INTERVAL_WITHOUT_CACHE: Duration = Duration::from_secs(5);
/// The minimum interval.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// A check is early by at most one part in this many of the interval: a fifth. The checks of
/// streams that were opened together are thereby spread out.
const JITTER_DIVISOR: u32 = 5;

/// The watched tokens of one issuer by their hash, and the checks that are running.
///
/// At most half of the issuer's concurrent calls are checks, but at least one, so that the rest
/// remains for requests.
pub(crate) struct Rechecks {
    interval: Duration,
    max_running: usize,
    clock: Arc<dyn Clock>,
    control: Handle,
    /// A reference to a watched token must not be dropped while this is locked, because its drop
    /// locks, too.
    table: Mutex<Table>,
}

/// The watched tokens and the state of their checks.
#[derive(Default)]
struct Table {
    watched: HashMap<TokenHash, Entry>,
    /// The tokens that are due, in order.
    queue: VecDeque<Weak<WatchedToken>>,
    running: usize,
}

/// A watched token and when it is checked.
struct Entry {
    token: Weak<WatchedToken>,
    /// The monotonic time of the next check, or [`Duration::MAX`] while the token is queued or
    /// checked, and after a failure.
    due: Duration,
}

impl Rechecks {
    /// Creates the schedule of an issuer. Its checks run on `control`.
    pub(crate) fn new(
        settings: &IssuerSettings,
        clock: Arc<dyn Clock>,
        control: Handle,
    ) -> Arc<Self> {
        let introspection = settings.validation.introspection();
        let interval =
            match introspection.map_or(Duration::ZERO, |settings| settings.cache_lifetime) {
                Duration::ZERO => INTERVAL_WITHOUT_CACHE,
                cache_lifetime => cache_lifetime.max(MIN_INTERVAL),
            };
        let max_running = introspection
            .map_or(1, |settings| settings.max_in_flight / 2)
            .max(1);
        Arc::new(Self {
            interval,
            max_running,
            clock,
            control,
            table: Mutex::default(),
        })
    }

    /// Returns the time from a confirmation to the latest time of the next check.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns when a token is due that was confirmed at this time.
    pub(super) fn next_after(&self, confirmed_at: Duration) -> Duration {
        let mut random = [0; 4];
        // Without random bytes, the check is as early as possible.
        let part = getrandom::fill(&mut random).map_or(u32::MAX, |()| u32::from_le_bytes(random));
        let early = (self.interval / JITTER_DIVISOR).mul_f64(f64::from(part) / f64::from(u32::MAX));
        confirmed_at.saturating_add(self.interval.saturating_sub(early))
    }

    /// Watches a token. Returns the existing watch of the token, unless it has failed.
    pub(crate) fn watch(
        self: &Arc<Self>,
        check: Box<dyn TokenCheck>,
        verified: &VerifiedToken,
    ) -> Arc<WatchedToken> {
        let key = check.hash();
        let due = self.next_after(confirmed_at(verified));
        let mut table = self.table.lock();
        let former = table
            .watched
            .get(&key)
            .and_then(|entry| entry.token.upgrade());
        if let Some(former) = &former
            && !former.has_failed()
        {
            return Arc::clone(former);
        }
        let watched = Arc::new(WatchedToken::new(check, verified.clone(), Arc::clone(self)));
        table.watched.insert(
            key,
            Entry {
                token: Arc::downgrade(&watched),
                due,
            },
        );
        drop(table);
        drop(former);
        watched
    }

    /// Makes a watched token due, for the next call of [`start_due`](Self::start_due).
    pub(crate) fn check_now(&self, hash: TokenHash) {
        if let Some(entry) = self.table.lock().watched.get_mut(&hash)
            && entry.due != Duration::MAX
        {
            entry.due = Duration::ZERO;
        }
    }

    /// Returns whether a token is watched.
    pub(crate) fn contains(&self, hash: TokenHash) -> bool {
        self.table.lock().watched.contains_key(&hash)
    }

    /// Queues the tokens that are due and starts checks up to the limit.
    pub(crate) fn start_due(self: &Arc<Self>) {
        let mut table = self.table.lock();
        if table.watched.is_empty() {
            return;
        }
        let now = self.clock.monotonic();
        let Table {
            watched,
            queue,
            running,
        } = &mut *table;
        for entry in watched.values_mut().filter(|entry| entry.due <= now) {
            entry.due = Duration::MAX;
            queue.push_back(Weak::clone(&entry.token));
        }
        let starts = queue.len().min(self.max_running.saturating_sub(*running));
        *running += starts;
        drop(table);
        for _ in 0..starts {
            let running = Running(Arc::clone(self));
            self.control
                .spawn(async move { running.0.check_queued().await });
        }
    }

    /// Checks queued tokens until the queue is empty.
    async fn check_queued(&self) {
        while let Some(watched) = self.next() {
            if let Some(due) = watched.check().await {
                self.schedule(&watched, due);
            }
        }
    }

    /// Takes the next queued token that is still watched.
    fn next(&self) -> Option<Arc<WatchedToken>> {
        loop {
            let next = self.table.lock().queue.pop_front()?;
            if let Some(watched) = next.upgrade() {
                return Some(watched);
            }
        }
    }

    /// Sets the time of the next check, unless another watch has replaced this one.
    fn schedule(&self, watched: &WatchedToken, due: Duration) {
        if let Some(entry) = self
            .table
            .lock()
            .watched
            .get_mut(&watched.hash)
            .filter(|entry| entry.is_of(watched))
        {
            entry.due = due;
        }
    }

    /// Removes a watched token that is dropped, unless another one has replaced it.
    pub(super) fn forget(&self, watched: &WatchedToken) {
        let mut table = self.table.lock();
        if table
            .watched
            .get(&watched.hash)
            .is_some_and(|entry| entry.is_of(watched))
        {
            table.watched.remove(&watched.hash);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.lock().watched.len()
    }
}

impl Entry {
    fn is_of(&self, watched: &WatchedToken) -> bool {
        std::ptr::eq(self.token.as_ptr(), watched)
    }
}

/// Counts one running task until it is dropped.
struct Running(Arc<Rechecks>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut table = self.0.table.lock();
        table.running = table.running.saturating_sub(1);
    }
}

impl fmt::Debug for Rechecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rechecks")
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}
