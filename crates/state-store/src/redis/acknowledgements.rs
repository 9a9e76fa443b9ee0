use std::{
    collections::{HashMap, HashSet},
    mem::take,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    queue::{MAX_RECORDS, WaitingRecord},
    record::Record,
};

/// The maximum number of acknowledgements that wait to be sent.
const MAX_OWED: usize = 16_384;
/// The maximum number of acknowledgements of a batch.
const MAX_REPLICAS: usize = 4096;

/// Names a set of records that was published, for the connection that has published it. Never 0.
pub(crate) type Batch = u64;

/// Acknowledgements that are expected from other replicas, and those that they expect.
#[derive(Default)]
pub(crate) struct Acknowledgements(Mutex<State>);

#[derive(Default)]
struct State {
    last: Batch,
    published: HashMap<Batch, Published>,
    owed: Vec<OwedAcknowledgement>,
}

/// An acknowledgement that another replica waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwedAcknowledgement {
    /// The connection that has published the batch.
    pub(crate) connection: String,
    pub(crate) batch: Batch,
}

/// Records that were published.
struct Published {
    records: Vec<WaitingRecord>,
    /// The connections of the live replicas; `None` until Redis has answered.
    expected: Option<HashSet<String>>,
    acknowledged: HashSet<String>,
}

impl Published {
    fn is_complete(&self) -> bool {
        self.expected
            .as_ref()
            .is_some_and(|expected| expected.is_subset(&self.acknowledged))
    }
}

impl Acknowledgements {
    /// Adds records that are about to be published.
    pub(crate) fn publish(&self, records: Vec<WaitingRecord>) -> Batch {
        let mut state = self.0.lock();
        state.last += 1;
        let batch = state.last;
        state.published.insert(
            batch,
            Published {
                records,
                expected: None,
                acknowledged: HashSet::new(),
            },
        );
        batch
    }

    /// The records were sent to these connections. They are confirmed when each has acknowledged
    /// them.
    pub(crate) fn expect(&self, batch: Batch, connections: HashSet<String>) {
        self.change(batch, |published| published.expected = Some(connections));
    }

    /// A connection has received the records of a batch.
    pub(crate) fn acknowledge(&self, batch: Batch, connection: String) {
        self.change(batch, |published| {
            if published.acknowledged.len() < MAX_REPLICAS {
                published.acknowledged.insert(connection);
            }
        });
    }

    /// Returns the batches that are not confirmed, to publish them again. Records that have waited
    /// for too long fail.
    pub(crate) fn unconfirmed(&self, now: Duration) -> Vec<(Batch, Vec<Record>)> {
        let mut state = self.0.lock();
        let mut late = Vec::new();
        for published in state.published.values_mut() {
            late.extend(
                published
                    .records
                    .extract_if(.., |waiting| waiting.is_late(now)),
            );
        }
        state
            .published
            .retain(|_, published| !published.records.is_empty());
        let records = |published: &Published| {
            published
                .records
                .iter()
                .map(|waiting| waiting.record)
                .collect()
        };
        let unconfirmed = state
            .published
            .iter()
            .map(|(batch, published)| (*batch, records(published)))
            .collect();
        drop(state);
        // Their tasks wake up without the lock.
        drop(late);
        unconfirmed
    }

    /// Returns how many more records can be published.
    pub(crate) fn free(&self) -> usize {
        MAX_RECORDS.saturating_sub(
            self.0
                .lock()
                .published
                .values()
                .map(|published| published.records.len())
                .sum(),
        )
    }

    /// Adds an acknowledgement for another replica, unless 16,384 wait. That replica then publishes
    /// the batch again.
    pub(crate) fn owe(&self, connection: String, batch: Batch) {
        let mut state = self.0.lock();
        if state.owed.len() < MAX_OWED {
            state.owed.push(OwedAcknowledgement { connection, batch });
        }
    }

    /// Takes the acknowledgements for other replicas.
    pub(crate) fn take_owed(&self) -> Vec<OwedAcknowledgement> {
        take(&mut self.0.lock().owed)
    }

    /// The connection is lost: the tickets of all records fail.
    pub(crate) fn disconnect(&self) {
        let mut state = self.0.lock();
        state.owed.clear();
        let failed = take(&mut state.published);
        drop(state);
        // Their tasks wake up without the lock.
        drop(failed);
    }

    fn change(&self, batch: Batch, change: impl FnOnce(&mut Published)) {
        let mut state = self.0.lock();
        let Some(published) = state.published.get_mut(&batch) else {
            return;
        };
        change(published);
        if published.is_complete() {
            let confirmed = state.published.remove(&batch);
            drop(state);
            confirmed
                .into_iter()
                .flat_map(|published| published.records)
                .for_each(WaitingRecord::confirm);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;
    use portcullis_session::{EndTicket, SessionEnd};

    use super::{super::queue::Queue, *};

    const END: Record = Record::End(SessionEnd::Floor {
        scope: None,
        created: UnixTime::from_secs(1),
    });

    /// Ends of which one waits for the returned ticket.
    fn waiting() -> (EndTicket, Vec<WaitingRecord>) {
        let queue = Queue::default();
        queue.connect();
        let ticket = queue.add_record(END, Duration::ZERO);
        (ticket, queue.take_records(1))
    }

    fn names(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// E13: an end is confirmed when every replica that Redis has named has acknowledged it, in any
    /// order.
    #[test]
    fn all_named_replicas_must_acknowledge() {
        let acknowledgements = Acknowledgements::default();
        let (ticket, ends) = waiting();
        let batch = acknowledgements.publish(ends);
        acknowledgements.acknowledge(batch, "a".to_owned());
        acknowledgements.expect(batch, names(&["a", "b"]));
        for (batch, name) in [(batch, "c"), (batch, "a"), (batch + 1, "b")] {
            acknowledgements.acknowledge(batch, name.to_owned());
            assert!(!ticket.is_done());
        }
        acknowledgements.acknowledge(batch, "b".to_owned());
        assert!(ticket.is_done());

        let (alone, ends) = waiting();
        acknowledgements.expect(acknowledgements.publish(ends), names(&[]));
        assert!(alone.is_done());
    }

    /// E13: ends that were not acknowledged are published again, with the acknowledgements so far,
    /// until they fail.
    #[tokio::test]
    async fn missing_acknowledgements_confirm_nothing() {
        let acknowledgements = Acknowledgements::default();
        let ((confirmed, ends), (late, more)) = (waiting(), waiting());
        let batch = acknowledgements.publish(ends);
        acknowledgements.expect(batch, names(&["a", "b"]));
        acknowledgements.acknowledge(batch, "a".to_owned());
        assert_eq!(
            acknowledgements.unconfirmed(Duration::ZERO),
            [(batch, vec![END])]
        );

        // The other replica is gone.
        acknowledgements.expect(batch, names(&["a"]));
        assert!(confirmed.is_done());
        assert!(acknowledgements.unconfirmed(Duration::ZERO).is_empty());

        acknowledgements.publish(more);
        assert_eq!(acknowledgements.free(), MAX_RECORDS - 1);
        assert!(acknowledgements.unconfirmed(Duration::MAX).is_empty());
        assert!(late.await.is_err());
        assert!(acknowledgements.free() == MAX_RECORDS);
    }

    /// E13: without a connection, nothing is confirmed, and nothing is kept for another one.
    #[tokio::test]
    async fn a_lost_connection_confirms_nothing() {
        let acknowledgements = Acknowledgements::default();
        let (ticket, ends) = waiting();
        acknowledgements.publish(ends);
        acknowledgements.owe("a".to_owned(), 7);
        acknowledgements.disconnect();
        assert!(ticket.await.is_err());
        assert!(acknowledgements.take_owed().is_empty());
        (0..=MAX_OWED).for_each(|_| acknowledgements.owe("a".to_owned(), 7));
        assert_eq!(acknowledgements.take_owed().len(), MAX_OWED);
    }
}
