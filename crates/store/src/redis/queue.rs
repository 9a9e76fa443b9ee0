//! The records that wait to be written.

use std::{
    mem::take,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis_session::{EndConfirmation, EndTicket, LastUse, SessionEnd};

use super::membership::{BEAT_INTERVAL, RETURN_TIME};
use crate::LimitUse;

/// The maximum number of ends that wait for their confirmation.
pub(crate) const MAX_ENDS: usize = 16_384;
/// The maximum number of last uses, and of uses of limits, that wait to be written.
const MAX_USES: usize = 262_144;
/// The maximum time for a confirmation: data that is new must have reached its age.
const MAX_WAIT: Duration = RETURN_TIME.saturating_add(BEAT_INTERVAL).saturating_add(BEAT_INTERVAL);

#[derive(Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    ends: Vec<WaitingEnd>,
    uses: Vec<LastUse>,
    limit_uses: Vec<LimitUse>,
    is_connected: bool,
    is_closed: bool,
    /// An end was not added although there is a connection.
    has_skipped: bool,
}

/// An end that is not confirmed.
pub(crate) struct WaitingEnd {
    pub(crate) end: SessionEnd,
    confirmation: EndConfirmation,
    deadline: Duration,
}

impl WaitingEnd {
    pub(crate) fn confirm(self) {
        self.confirmation.confirm();
    }

    pub(crate) fn is_late(&self, now: Duration) -> bool {
        now >= self.deadline
    }
}

impl Queue {
    /// Adds an end. Without a connection, its ticket fails.
    pub(crate) fn add_end(&self, end: SessionEnd, now: Duration) -> EndTicket {
        let mut waiting = self.lock();
        if !waiting.is_connected || waiting.is_closed {
            return EndTicket::failed();
        }
        if waiting.ends.len() >= MAX_ENDS {
            waiting.has_skipped = true;
            return EndTicket::failed();
        }
        let (confirmation, ticket) = EndTicket::pending();
        waiting.ends.push(WaitingEnd { end, confirmation, deadline: now.saturating_add(MAX_WAIT) });
        ticket
    }

    /// Adds last uses, as far as there is space.
    pub(crate) fn add_uses(&self, uses: &[LastUse]) {
        let mut waiting = self.lock();
        let free = MAX_USES.saturating_sub(waiting.uses.len());
        waiting.uses.extend(uses.iter().take(free));
    }

    /// Adds uses of limits, as far as there is space. Without a connection, they are dropped.
    pub(crate) fn add_limit_uses(&self, uses: &[LimitUse]) {
        let mut waiting = self.lock();
        let free = if waiting.is_connected { MAX_USES.saturating_sub(waiting.limit_uses.len()) } else { 0 };
        waiting.limit_uses.extend(uses.iter().take(free));
    }

    /// Takes the uses of limits.
    pub(crate) fn take_limit_uses(&self) -> Vec<LimitUse> {
        take(&mut self.lock().limit_uses)
    }

    /// Takes up to `max` ends.
    pub(crate) fn take_ends(&self, max: usize) -> Vec<WaitingEnd> {
        let mut waiting = self.lock();
        let rest = waiting.ends.len().saturating_sub(max);
        waiting.ends.split_off(rest)
    }

    /// Returns whether an end has failed because there was no space, and forgets this. All ends must then be written.
    pub(crate) fn take_skipped(&self) -> bool {
        take(&mut self.lock().has_skipped)
    }

    /// Takes the last uses of up to `max` sessions.
    pub(crate) fn take_uses(&self, max: usize) -> Vec<LastUse> {
        let mut waiting = self.lock();
        let rest = waiting.uses.len().saturating_sub(max);
        waiting.uses.split_off(rest)
    }

    /// The connection is there.
    pub(crate) fn connect(&self) {
        self.lock().is_connected = true;
    }

    /// The connection is lost: the tickets of all ends fail.
    pub(crate) fn disconnect(&self) {
        let mut waiting = self.lock();
        waiting.is_connected = false;
        waiting.limit_uses.clear();
        let failed = take(&mut waiting.ends);
        drop(waiting);
        // Their tasks wake up without the lock.
        drop(failed);
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;

    use super::*;

    const END: SessionEnd = SessionEnd::Floor { scope: None, created: UnixTime::from_secs(1) };

    /// E13: ends that cannot be shared fail: before the connection, after it, when too many wait, and after the end.
    #[tokio::test]
    async fn ends_fail_without_a_connection() {
        let queue = Queue::default();
        assert!(queue.add_end(END, Duration::ZERO).await.is_err());
        queue.connect();
        let waiting = queue.add_end(END, Duration::ZERO);
        let confirmed = queue.add_end(END, Duration::ZERO);
        queue.take_ends(1).pop().unwrap().confirm();
        assert!(confirmed.await.is_ok());
        queue.disconnect();
        assert!(waiting.await.is_err());
        queue.connect();
        let tickets: Vec<_> = (0..MAX_ENDS).map(|_| queue.add_end(END, Duration::ZERO)).collect();
        assert!(!queue.take_skipped());
        assert!(queue.add_end(END, Duration::ZERO).await.is_err());
        assert!(queue.take_skipped() && !queue.take_skipped());
        let taken = queue.take_ends(MAX_ENDS);
        queue.close();
        assert!(queue.add_end(END, Duration::ZERO).await.is_err());
        assert!(taken.iter().all(|end| !end.is_late(Duration::ZERO) && end.is_late(MAX_WAIT)));
        drop((taken, tickets));
    }

    /// E13: uses of limits wait only while there is a connection, up to a limit.
    #[test]
    fn uses_of_limits_are_dropped_without_a_connection() {
        let queue = Queue::default();
        let uses = vec![LimitUse { limit: 1, key: 2, count: 3 }; MAX_USES];
        queue.add_limit_uses(&uses);
        assert!(queue.take_limit_uses().is_empty());
        queue.connect();
        queue.add_limit_uses(&uses[..9]);
        queue.add_limit_uses(&uses);
        assert_eq!(queue.take_limit_uses().len(), MAX_USES);
        queue.add_limit_uses(&uses[..9]);
        queue.disconnect();
        assert!(queue.take_limit_uses().is_empty());
    }

    /// E13: last uses wait for the connection, up to a limit.
    #[test]
    fn last_uses_wait() {
        let queue = Queue::default();
        let uses = vec![LastUse { session: [1; 16], time: UnixTime::from_secs(1) }; 1000];
        for _ in 0..=MAX_USES / uses.len() {
            queue.add_uses(&uses);
        }
        queue.disconnect();
        assert_eq!(queue.take_uses(1000).len(), 1000);
        assert_eq!(queue.take_uses(usize::MAX).len(), MAX_USES - 1000);
        assert!(queue.take_uses(1).is_empty());
    }
}
