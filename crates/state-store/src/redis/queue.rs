//! [`Queue`]: what waits to be sent to Redis, within bounds.

use std::{mem::take, time::Duration};

use parking_lot::Mutex;
use portcullis_session::{AnnouncedSession, EndConfirmation, EndTicket, LastUse};

use super::{
    membership::{BEAT_INTERVAL, RETURN_TIME},
    record::Record,
};
use crate::LimitUse;

/// The maximum number of records that wait to be sent, and of those that were sent and wait for
/// their confirmation.
pub(crate) const MAX_RECORDS: usize = 16_384;
/// The maximum number of last uses that wait to be written, and of uses of limits and announced
/// sessions that wait to be published.
const MAX_USES: usize = 262_144;
/// The maximum number of inactive tokens that wait to be published.
const MAX_INACTIVE: usize = 16_384;
/// The maximum time for a confirmation: new data must reach its age, and be published once more at
/// a beat.
const MAX_WAIT: Duration = RETURN_TIME
    .saturating_add(BEAT_INTERVAL)
    .saturating_add(BEAT_INTERVAL);

/// What waits to be sent. The threads of requests add to it, and the task of the journal takes from
/// it. Neither waits for the other: what does not fit is dropped, or fails if a ticket waits for
/// it.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    records: Vec<WaitingRecord>,
    last_uses: Vec<LastUse>,
    limit_uses: Vec<LimitUse>,
    announced: Vec<AnnouncedSession>,
    inactive_tokens: Vec<[u8; 16]>,
    is_connected: bool,
    is_closed: bool,
    /// A record did not fit although there is a connection.
    has_skipped: bool,
}

/// A record that is not confirmed. Its ticket fails when it is dropped.
pub(crate) struct WaitingRecord {
    pub(crate) record: Record,
    confirmation: EndConfirmation,
    /// By the monotonic clock.
    deadline: Duration,
}

impl WaitingRecord {
    /// Completes the ticket.
    pub(crate) fn confirm(self) {
        self.confirmation.confirm();
    }

    /// Returns whether the record has waited for too long.
    pub(crate) fn is_late(&self, now: Duration) -> bool {
        now >= self.deadline
    }
}

impl Queue {
    /// Adds a record. Its ticket fails if there is no connection, if 16,384 records wait, or after
    /// [`close`](Self::close).
    pub(crate) fn add_record(&self, record: Record, now: Duration) -> EndTicket {
        let mut waiting = self.0.lock();
        if !waiting.is_connected || waiting.is_closed {
            return EndTicket::failed();
        }
        if waiting.records.len() >= MAX_RECORDS {
            waiting.has_skipped = true;
            return EndTicket::failed();
        }
        let (confirmation, ticket) = EndTicket::pending();
        waiting.records.push(WaitingRecord {
            record,
            confirmation,
            deadline: now.saturating_add(MAX_WAIT),
        });
        ticket
    }

    /// Adds last uses, as far as there is space. They wait for a connection.
    pub(crate) fn add_last_uses(&self, uses: &[LastUse]) {
        extend_bounded(&mut self.0.lock().last_uses, uses);
    }

    /// Adds uses of limits, as far as there is space. Without a connection, they are dropped.
    pub(crate) fn add_limit_uses(&self, uses: &[LimitUse]) {
        let mut waiting = self.0.lock();
        if waiting.is_connected {
            extend_bounded(&mut waiting.limit_uses, uses);
        }
    }

    /// Adds announced sessions, as far as there is space. Without a connection, they are dropped.
    pub(crate) fn add_announced(&self, sessions: &[AnnouncedSession]) {
        let mut waiting = self.0.lock();
        if waiting.is_connected {
            extend_bounded(&mut waiting.announced, sessions);
        }
    }

    pub(crate) fn take_announced(&self) -> Vec<AnnouncedSession> {
        take(&mut self.0.lock().announced)
    }

    pub(crate) fn take_limit_uses(&self) -> Vec<LimitUse> {
        take(&mut self.0.lock().limit_uses)
    }

    /// Adds a token that was found inactive, if there is space. It waits for a connection.
    pub(crate) fn add_inactive(&self, token: [u8; 16]) {
        let mut waiting = self.0.lock();
        if waiting.inactive_tokens.len() < MAX_INACTIVE {
            waiting.inactive_tokens.push(token);
        }
    }

    /// Takes the tokens that were found inactive.
    pub(crate) fn take_inactive(&self) -> Vec<[u8; 16]> {
        take(&mut self.0.lock().inactive_tokens)
    }

    /// Takes up to `max` records.
    pub(crate) fn take_records(&self, max: usize) -> Vec<WaitingRecord> {
        let mut waiting = self.0.lock();
        let rest = waiting.records.len().saturating_sub(max);
        waiting.records.split_off(rest)
    }

    /// Returns whether a record has failed because there was no space, and forgets this. All
    /// records must then be written.
    pub(crate) fn take_skipped(&self) -> bool {
        take(&mut self.0.lock().has_skipped)
    }

    /// Takes up to `max` last uses.
    pub(crate) fn take_last_uses(&self, max: usize) -> Vec<LastUse> {
        let mut waiting = self.0.lock();
        let rest = waiting.last_uses.len().saturating_sub(max);
        waiting.last_uses.split_off(rest)
    }

    /// Accepts records from now on, because there is a connection.
    pub(crate) fn connect(&self) {
        self.0.lock().is_connected = true;
    }

    /// Accepts no records until there is another connection. The tickets of those that wait fail.
    pub(crate) fn disconnect(&self) {
        let mut waiting = self.0.lock();
        waiting.is_connected = false;
        waiting.limit_uses.clear();
        waiting.announced.clear();
        let failed = take(&mut waiting.records);
        drop(waiting);
        // Their tasks wake up without the lock.
        drop(failed);
    }

    /// Accepts no records any more.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
    }

    /// Returns whether the queue was closed, and the task is to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }
}

/// Adds items up to [`MAX_USES`]. Further ones are dropped.
fn extend_bounded<T: Copy>(waiting: &mut Vec<T>, items: &[T]) {
    let free = MAX_USES.saturating_sub(waiting.len());
    waiting.extend(items.iter().take(free));
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;
    use portcullis_session::{ScopeId, SessionEnd};

    use super::*;

    const END: Record = Record::End(SessionEnd::Floor {
        scope: None,
        created: UnixTime::from_secs(1),
    });

    /// E13: ends that cannot be shared fail: before the connection, after it, when too many wait,
    /// and after the end.
    #[tokio::test]
    async fn ends_fail_without_a_connection() {
        let queue = Queue::default();
        assert!(queue.add_record(END, Duration::ZERO).await.is_err());
        queue.connect();
        let waiting = queue.add_record(END, Duration::ZERO);
        let confirmed = queue.add_record(END, Duration::ZERO);
        queue.take_records(1).pop().unwrap().confirm();
        assert!(confirmed.await.is_ok());

        queue.disconnect();
        assert!(waiting.await.is_err());
        queue.connect();
        let tickets: Vec<_> = (0..MAX_RECORDS)
            .map(|_| queue.add_record(END, Duration::ZERO))
            .collect();
        assert!(!queue.take_skipped());
        assert!(queue.add_record(END, Duration::ZERO).await.is_err());
        assert!(queue.take_skipped());
        assert!(!queue.take_skipped());

        let taken = queue.take_records(MAX_RECORDS);
        queue.close();
        assert!(queue.add_record(END, Duration::ZERO).await.is_err());
        assert!(
            taken
                .iter()
                .all(|waiting| !waiting.is_late(Duration::ZERO) && waiting.is_late(MAX_WAIT))
        );
        drop((taken, tickets));
    }

    /// E13: uses of limits and announced sessions wait only while there is a connection, up to a
    /// limit.
    #[test]
    fn uses_of_limits_are_dropped_without_a_connection() {
        let queue = Queue::default();
        let uses = vec![
            LimitUse {
                limit: 1,
                key: 2,
                count: 3
            };
            MAX_USES
        ];
        queue.add_limit_uses(&uses);
        assert!(queue.take_limit_uses().is_empty());

        queue.connect();
        queue.add_limit_uses(&uses[..9]);
        queue.add_limit_uses(&uses);
        assert_eq!(queue.take_limit_uses().len(), MAX_USES);

        queue.add_limit_uses(&uses[..9]);
        let session = AnnouncedSession {
            owner: ScopeId([1; 16]),
            subject: None,
            session: 2,
        };
        queue.add_announced(&[session]);
        assert_eq!(queue.take_announced(), [session]);

        queue.add_announced(&vec![session; MAX_USES + 1]);
        queue.disconnect();
        queue.add_announced(&[session]);
        assert!(queue.take_limit_uses().is_empty());
        assert!(queue.take_announced().is_empty());
    }

    /// E13: inactive tokens wait for the connection, up to a limit.
    #[test]
    fn inactive_tokens_wait() {
        let queue = Queue::default();
        (0..=MAX_INACTIVE).for_each(|_| queue.add_inactive([1; 16]));
        queue.disconnect();
        assert_eq!(queue.take_inactive().len(), MAX_INACTIVE);
        assert!(queue.take_inactive().is_empty());
    }

    /// E13: last uses wait for the connection, up to a limit.
    #[test]
    fn last_uses_wait() {
        let queue = Queue::default();
        let uses = vec![
            LastUse {
                session: [1; 16],
                time: UnixTime::from_secs(1)
            };
            1000
        ];
        for _ in 0..=MAX_USES / uses.len() {
            queue.add_last_uses(&uses);
        }
        queue.disconnect();
        assert_eq!(queue.take_last_uses(1000).len(), 1000);
        assert_eq!(queue.take_last_uses(usize::MAX).len(), MAX_USES - 1000);
        assert!(queue.take_last_uses(1).is_empty());
    }
}
