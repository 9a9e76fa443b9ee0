use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Runs at most one operation per key and shares its result. The number of operations is bounded.
///
/// The lock is never held across an operation.
pub(crate) struct SingleFlight<K, T> {
    max_running: usize,
    running: Mutex<HashMap<K, ResultReceiver<T>>>,
}

/// The result of [`SingleFlight::join`].
pub(crate) enum Joined<K: Copy + Eq + Hash, T: Clone> {
    /// No operation is running for the key. The caller starts it and passes its result to the
    /// [`Operation`].
    Leader(Operation<K, T>, ResultReceiver<T>),
    /// An operation is running for the key.
    Follower(ResultReceiver<T>),
    /// The maximum number of operations is running.
    Full,
}

/// Receives the result of a running operation.
#[derive(Clone)]
pub(crate) struct ResultReceiver<T>(watch::Receiver<Option<T>>);

/// A running operation. When it is dropped, all receivers get its result, and the key is free
/// again.
pub(crate) struct Operation<K: Copy + Eq + Hash, T: Clone> {
    single_flight: Arc<SingleFlight<K, T>>,
    key: K,
    sender: watch::Sender<Option<T>>,
}

impl<K: Copy + Eq + Hash, T: Clone> SingleFlight<K, T> {
    /// Creates a table of at most `max_running` operations.
    pub(crate) fn new(max_running: usize) -> Arc<Self> {
        Arc::new(Self {
            max_running,
            running: Mutex::default(),
        })
    }

    /// Joins the operation for `key`, or becomes its leader.
    pub(crate) fn join(self: &Arc<Self>, key: K) -> Joined<K, T> {
        let mut running = self.running.lock();
        if let Some(receiver) = running.get(&key) {
            return Joined::Follower(receiver.clone());
        }
        if running.len() >= self.max_running {
            return Joined::Full;
        }
        let (sender, receiver) = watch::channel(None);
        let receiver = ResultReceiver(receiver);
        running.insert(key, receiver.clone());
        Joined::Leader(
            Operation {
                single_flight: Arc::clone(self),
                key,
                sender,
            },
            receiver,
        )
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Operation<K, T> {
    /// Ends the operation with its result.
    pub(crate) fn complete(self, result: T) {
        // The key is freed first, so that a receiver that has the result can start the next
        // operation.
        self.single_flight.running.lock().remove(&self.key);
        self.sender.send_replace(Some(result));
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Drop for Operation<K, T> {
    fn drop(&mut self) {
        // A completed operation has removed its key, and another one may have started since.
        if self.sender.borrow().is_none() {
            self.single_flight.running.lock().remove(&self.key);
        }
    }
}

impl<T: Clone> ResultReceiver<T> {
    /// Waits for the result. Returns `None` if the operation was dropped without one, because its
    /// task panicked or its runtime was shut down.
    pub(crate) async fn recv(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(
        single_flight: &Arc<SingleFlight<u8, &'static str>>,
        key: u8,
    ) -> Operation<u8, &'static str> {
        match single_flight.join(key) {
            Joined::Leader(operation, _) => operation,
            _ => panic!("the operation is running already"),
        }
    }

    fn follow(
        single_flight: &Arc<SingleFlight<u8, &'static str>>,
        key: u8,
    ) -> ResultReceiver<&'static str> {
        match single_flight.join(key) {
            Joined::Follower(receiver) => receiver,
            _ => panic!("no operation is running"),
        }
    }

    /// Callers with the same key share a result, and the key is free afterwards.
    #[tokio::test]
    async fn one_operation_per_key() {
        let single_flight = SingleFlight::new(2);
        let first = lead(&single_flight, 1);
        let followers = [follow(&single_flight, 1), follow(&single_flight, 1)];
        first.complete("result");
        for follower in followers {
            assert_eq!(follower.recv().await, Some("result"));
        }
        lead(&single_flight, 1).complete("next");
    }

    /// A dropped operation ends the wait without a result.
    #[tokio::test]
    async fn a_dropped_operation_has_no_result() {
        let single_flight = SingleFlight::new(2);
        let operation = lead(&single_flight, 1);
        let follower = follow(&single_flight, 1);
        drop(operation);
        assert_eq!(follower.recv().await, None);
        lead(&single_flight, 1).complete("next");
    }

    /// The number of operations is bounded.
    #[tokio::test]
    async fn operations_are_bounded() {
        let single_flight = SingleFlight::new(1);
        let operation = lead(&single_flight, 1);
        assert!(matches!(single_flight.join(2), Joined::Full));
        operation.complete("result");
        lead(&single_flight, 2).complete("result");
    }
}
