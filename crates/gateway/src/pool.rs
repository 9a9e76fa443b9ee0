use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis_metadata::Clock;

use crate::link::Link;

/// The unused connections of one worker, at most `max_idle`, the longest unused first.
///
/// No task watches them: that one was closed by its other end is noticed when it is used.
pub(crate) struct Pool {
    idle: Mutex<VecDeque<Parked>>,
    max_idle: usize,
    max_age: Duration,
    clock: Arc<dyn Clock>,
}

struct Parked {
    link: Box<Link>,
    since: Duration,
}

impl Pool {
    pub(crate) fn new(max_idle: usize, max_age: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { idle: Mutex::default(), max_idle, max_age, clock }
    }

    /// The connection that was used last, if any. Whether it is still open shows when it is used.
    pub(crate) fn take(&self) -> Option<Box<Link>> {
        let now = self.clock.monotonic();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = idle.pop_back()?;
        if self.is_too_old(&newest, now) {
            // All others are older still.
            idle.clear();
            return None;
        }
        Some(newest.link)
    }

    /// Keeps an idle connection for later, where any are kept.
    pub(crate) fn put(&self, mut link: Box<Link>) {
        if self.max_idle == 0 {
            return;
        }
        link.park();
        let now = self.clock.monotonic();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.front().is_some_and(|oldest| idle.len() >= self.max_idle || self.is_too_old(oldest, now)) {
            idle.pop_front();
        }
        idle.push_back(Parked { link, since: now });
    }

    /// The connection that has been unused for the longest time, if any.
    pub(crate) fn take_oldest(&self) -> Option<Box<Link>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop_front().map(|oldest| oldest.link)
    }

    fn is_too_old(&self, parked: &Parked, now: Duration) -> bool {
        now.saturating_sub(parked.since) >= self.max_age
    }
}
