//! [`MessageBudget`]: limits the memory of all messages in progress together.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

/// The bytes that requests in progress and arriving messages of the server can hold together.
///
/// A request of the client is rejected if it does not fit. A message of the server waits instead:
/// its connection is not read meanwhile. To prevent a deadlock, one message at a time can use a
/// reserve of the maximum message size.
pub struct MessageBudget {
    used: Mutex<usize>,
    freed: Notify,
    /// The bytes available without the reserve.
    available: usize,
    reserve: Arc<AsyncMutex<()>>,
}

/// The bytes that one message holds until it is dropped.
pub struct Reservation {
    /// `None` for messages that are not counted.
    budget: Option<Arc<MessageBudget>>,
    held: usize,
    /// Present while the message uses the reserve.
    turn: Option<OwnedMutexGuard<()>>,
}

/// Arriving messages up to this size are not counted: streams that wait for an event hold little,
/// and never wait for each other.
const UNCOUNTED: usize = 64 * 1024;

impl MessageBudget {
    /// Creates a budget of `total` bytes, of which `max_message` are the reserve. At least one
    /// message always fits beside it.
    pub fn new(total: usize, max_message: usize) -> Arc<Self> {
        let available = total.saturating_sub(max_message).max(max_message);
        let reserve = Arc::default();
        Arc::new(Self {
            used: Mutex::new(0),
            freed: Notify::new(),
            available,
            reserve,
        })
    }

    /// Reserves `size` bytes now, or returns `None`.
    pub fn try_reserve(self: &Arc<Self>, size: usize) -> Option<Reservation> {
        self.take(size).then(|| Reservation {
            budget: Some(Arc::clone(self)),
            held: size,
            turn: None,
        })
    }

    /// Creates an empty reservation, which grows as a message arrives.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation {
            budget: Some(Arc::clone(self)),
            held: 0,
            turn: None,
        }
    }

    fn take(&self, size: usize) -> bool {
        let mut used = self.used.lock();
        let fits = used.saturating_add(size) <= self.available;
        if fits {
            *used += size;
        }
        fits
    }
}

impl Reservation {
    /// Creates a reservation that is not counted.
    pub fn uncounted() -> Self {
        Self {
            budget: None,
            held: 0,
            turn: None,
        }
    }

    /// Waits until the message can hold `size` bytes.
    pub async fn grow_to(&mut self, size: usize) {
        let Some(budget) = &self.budget else { return };
        if size <= UNCOUNTED || size <= self.held {
            return;
        }
        let missing = size - self.held;
        if self.turn.is_none() {
            let turn = Arc::clone(&budget.reserve).lock_owned();
            tokio::pin!(turn);
            loop {
                let freed = budget.freed.notified();
                tokio::pin!(freed);
                // From here on, a notification is not missed.
                freed.as_mut().enable();
                if budget.take(missing) {
                    self.held = size;
                    return;
                }
                tokio::select! {
                    () = &mut freed => {}
                    turn = &mut turn => {
                        self.turn = Some(turn);
                        break;
                    }
                }
            }
        }
        *budget.used.lock() += missing;
        self.held = size;
    }

    /// Releases the bytes beyond `size`.
    pub fn shrink_to(&mut self, size: usize) {
        let Some(budget) = &self.budget else { return };
        let size = if size <= UNCOUNTED { 0 } else { size };
        if size >= self.held {
            return;
        }
        let mut used = budget.used.lock();
        *used = used.saturating_sub(self.held - size);
        drop(used);
        self.held = size;
        if size == 0 {
            self.turn = None;
        }
        budget.freed.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{task::JoinSet, time::timeout};

    use super::*;

    const MIB: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn requests_are_rejected_and_responses_wait() {
        let budget = MessageBudget::new(4 * MIB, MIB);
        let requests: Vec<_> = (0..3).map(|_| budget.try_reserve(MIB).unwrap()).collect();
        assert!(
            budget.try_reserve(1).is_none(),
            "the reserve is not for requests"
        );
        let mut first = budget.reservation();
        let mut second = budget.reservation();
        second.grow_to(UNCOUNTED).await;
        first.grow_to(MIB / 2).await;
        first.grow_to(MIB).await;
        assert!(
            timeout(Duration::from_secs(60), second.grow_to(MIB))
                .await
                .is_err(),
            "one uses the reserve"
        );
        drop(requests);
        timeout(Duration::from_secs(1), second.grow_to(MIB))
            .await
            .unwrap();
        drop((first, second));
        assert_eq!(*budget.used.lock(), 0);
    }

    /// Messages that have arrived in part never wait for each other.
    #[tokio::test(start_paused = true)]
    async fn waiting_always_ends() {
        let budget = MessageBudget::new(3 * MIB, MIB);
        let mut messages = JoinSet::new();
        for _ in 0..50 {
            let budget = Arc::clone(&budget);
            messages.spawn(async move {
                let mut reservation = budget.reservation();
                for part in 1..=16 {
                    reservation.grow_to(part * MIB / 16).await;
                    assert!(*budget.used.lock() <= 3 * MIB);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        let all = async {
            while messages
                .join_next()
                .await
                .is_some_and(|ended| ended.is_ok())
            {}
        };
        timeout(Duration::from_secs(600), all).await.unwrap();
        assert!(messages.is_empty());
        assert_eq!(*budget.used.lock(), 0);
    }

    #[tokio::test]
    async fn a_message_of_the_maximum_size_always_fits() {
        let budget = MessageBudget::new(MIB, 8 * MIB);
        assert!(budget.try_reserve(8 * MIB).is_some());
        let mut given_up = budget.reservation();
        given_up.grow_to(8 * MIB).await;
        let mut waiting = budget.reservation();
        waiting.grow_to(8 * MIB).await;
        drop(waiting);
        given_up.shrink_to(10);
        assert_eq!(*budget.used.lock(), 0);
    }
}
