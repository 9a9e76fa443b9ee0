use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::Instant};

use super::activity::{Activity, Inactivity};

/// How many connections one search examines, which bounds its time.
const SEARCH_LIMIT: usize = 256;
/// A connection that was used or opened this recently is not closed: its next request may be on its
/// way.
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// A connection whose client took a part of a response this recently is not closed: its network may
/// be slow.
const BLOCKED_GRACE: Duration = Duration::from_secs(2);

/// The open connections of all workers, among which an idle or blocked one is closed for a new one.
#[derive(Default)]
pub(crate) struct ConnectionTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    slots: Vec<Option<Open>>,
    free: Vec<usize>,
    /// Where the next search begins.
    next: usize,
}

struct Open {
    activity: Arc<Activity>,
    task: Option<AbortHandle>,
}

/// A connection's entry in the table, removed on drop.
pub(crate) struct TableEntry {
    connections: Arc<ConnectionTable>,
    slot: usize,
}

impl ConnectionTable {
    pub(crate) fn add(self: &Arc<Self>, activity: Arc<Activity>) -> TableEntry {
        let mut table = self.0.lock();
        let open = Some(Open {
            activity,
            task: None,
        });
        let slot = match table.free.pop() {
            Some(slot) => {
                table.slots[slot] = open;
                slot
            }
            None => {
                table.slots.push(open);
                table.slots.len() - 1
            }
        };
        TableEntry {
            connections: Arc::clone(self),
            slot,
        }
    }

    /// Sets the task that serves the connection in this slot.
    pub(crate) fn set_task(&self, slot: usize, task: AbortHandle) {
        if let Some(Some(open)) = self.0.lock().slots.get_mut(slot) {
            open.task = Some(task);
        }
    }

    /// Closes the connection that has been idle for the longest time, of those that one search
    /// examines. If none is idle, closes the one that has been blocked for the longest time.
    /// Returns whether a connection was closed. A connection with a request that is not blocked is
    /// never closed.
    pub(crate) fn close_idle(&self) -> bool {
        let now = Instant::now();
        let mut table = self.0.lock();
        let start = table.next;
        let count = table.slots.len();
        table.next = (start + SEARCH_LIMIT.min(count)) % count.max(1);
        let inactive = (start..start + SEARCH_LIMIT.min(count)).filter_map(|position| {
            let open = table.slots[position % count].as_ref()?;
            let inactivity = open.activity.inactivity()?;
            let (since, grace) = match inactivity {
                Inactivity::Idle(since) => (since, IDLE_GRACE),
                Inactivity::Blocked(since) => (since, BLOCKED_GRACE),
            };
            (now.saturating_duration_since(since) >= grace).then_some((inactivity, open))
        });
        let Some((_, open)) = inactive.min_by_key(|(inactivity, _)| *inactivity) else {
            return false;
        };
        let Some(task) = open.task.clone().filter(|_| open.activity.close()) else {
            return false;
        };
        drop(table);
        task.abort();
        true
    }
}

impl TableEntry {
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        let mut table = self.connections.0.lock();
        table.slots[self.slot] = None;
        table.free.push(self.slot);
        if table.free.len() == table.slots.len() {
            // The memory of many connections is not kept.
            (table.slots, table.free) = (Vec::new(), Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use http::Response;
    use tokio::{
        task::JoinSet,
        time::{advance, sleep},
    };

    use super::*;
    use crate::connection::counted_response::CountedResponse;

    struct Served {
        connections: Arc<ConnectionTable>,
        tasks: JoinSet<()>,
    }

    impl Served {
        fn new() -> Self {
            Self {
                connections: Arc::default(),
                tasks: JoinSet::new(),
            }
        }

        fn open(&mut self) -> Arc<Activity> {
            let activity = Activity::new();
            let entry = self.connections.add(Arc::clone(&activity));
            let slot = entry.slot();
            let task = self.tasks.spawn(async move {
                let _entry = entry;
                sleep(Duration::from_secs(1_000_000)).await;
            });
            self.connections.set_task(slot, task);
            activity
        }

        async fn closes_one(&mut self) -> bool {
            let closes = self.connections.close_idle();
            if closes {
                assert!(
                    self.tasks
                        .join_next()
                        .await
                        .unwrap()
                        .unwrap_err()
                        .is_cancelled()
                );
            }
            closes
        }
    }

    /// L9: the connection that is idle for the longest time is closed. Connections that have a
    /// request or are new are not.
    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_is_closed() {
        let mut served = Served::new();
        assert!(!served.closes_one().await);
        let busy = served.open();
        let request = busy.begin();
        let used = served.open();
        advance(IDLE_GRACE).await;
        let idle = served.open();
        advance(IDLE_GRACE).await;
        drop(used.begin());
        assert!(served.closes_one().await);
        assert!(idle.begin().is_none(), "a late request is not served");
        assert!(!served.closes_one().await, "one is busy, one was just used");

        advance(IDLE_GRACE).await;
        assert!(served.closes_one().await);
        assert!(used.begin().is_none());
        assert!(request.is_some());

        drop(request);
        assert!(busy.begin().is_some());
        advance(IDLE_GRACE).await;
        assert!(served.closes_one().await);
        assert!(served.tasks.is_empty());
        assert!(
            served.connections.0.lock().slots.is_empty(),
            "nothing is kept"
        );
    }

    /// L9: a blocked connection is closed if no connection is idle.
    #[tokio::test(start_paused = true)]
    async fn a_blocked_connection_is_closed_after_idle_ones() {
        let mut served = Served::new();
        let blocked = served.open();
        let _response = blocked
            .begin()
            .map(|request| CountedResponse::new(ready(Response::new(())), request, false))
            .unwrap()
            .await;
        advance(IDLE_GRACE).await;
        assert!(!served.closes_one().await, "its network may be slow");

        let idle = served.open();
        advance(BLOCKED_GRACE).await;
        assert!(served.closes_one().await);
        assert!(idle.begin().is_none());
        assert!(served.closes_one().await);
        assert!(blocked.begin().is_none());
    }

    /// L9: one search is bounded, and repeated searches examine every connection.
    #[tokio::test(start_paused = true)]
    async fn searches_continue_where_the_last_one_ended() {
        let mut served = Served::new();
        let held: Vec<_> = (0..SEARCH_LIMIT * 2).map(|_| served.open()).collect();
        let requests: Vec<_> = held.iter().map(|activity| activity.begin()).collect();
        let idle = served.open();
        advance(IDLE_GRACE).await;
        let searches = [
            served.closes_one().await,
            served.closes_one().await,
            served.closes_one().await,
        ];
        assert_eq!(searches, [false, false, true]);
        assert!(idle.begin().is_none());
        assert!(requests.iter().all(Option::is_some));
    }
}
