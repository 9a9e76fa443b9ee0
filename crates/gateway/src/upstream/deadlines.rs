//! [`Deadlines`]: the deadlines of requests that wait for the head of a response, with one timer
//! per worker.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use slab::Slab;
use tokio::{runtime::Handle, time::sleep};

/// The maximum time between two checks of the list, and so the maximum delay of a deadline.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// The minimum number of periods in a limit. It bounds the delay of a deadline to a part of the
/// limit.
const MIN_PERIODS: u32 = 4;

/// The requests of one worker that wait for the head of a response, all with the same time limit.
///
/// A request has no timer of its own: while requests wait, one task counts periods and wakes the
/// requests that are overdue. A request is woken up to one period after its deadline.
pub(crate) struct Deadlines(Arc<Mutex<List>>);

/// The list and the state of its timer.
struct List {
    /// The requests that wait or are overdue, in no order: each period examines them all.
    requests: Slab<Deadline>,
    /// The number of periods since the start.
    now: u64,
    period: Duration,
    /// The time limit in periods.
    limit: u64,
    /// Alive while a task counts the periods.
    timer: Weak<()>,
}

/// Identifies a request in the list. Its owner removes the request with [`Deadlines::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestNumber(usize);

/// The deadline of a request.
enum Deadline {
    /// The request is overdue in this period.
    In {
        period: u64,
        waker: Waker,
    },
    Passed,
}

impl Deadlines {
    /// Creates a list for requests with this time limit.
    pub(crate) fn new(limit: Duration) -> Self {
        let period = (limit / MIN_PERIODS).clamp(Duration::from_millis(1), MAX_PERIOD);
        let periods = limit.as_nanos().div_ceil(period.as_nanos());
        Self(Arc::new(Mutex::new(List {
            requests: Slab::new(),
            now: 0,
            period,
            // The current period has already begun.
            limit: u64::try_from(periods).unwrap_or(u64::MAX).saturating_add(1),
            timer: Weak::new(),
        })))
    }

    /// Completes when the request is overdue. The first call adds the request to the list and sets
    /// `number`.
    pub(crate) fn poll_overdue(
        &self,
        number: &mut Option<RequestNumber>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let mut list = self.0.lock();
        let Some(RequestNumber(number)) = *number else {
            *number = Some(list.add(cx.waker()));
            if list.timer.strong_count() == 0 {
                list.timer = spawn_timer(&self.0, list.period);
            }
            return Poll::Pending;
        };
        match list.requests.get_mut(number) {
            Some(Deadline::In { waker, .. }) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Some(Deadline::Passed) | None => Poll::Ready(()),
        }
    }

    /// Removes a request, if it was added.
    pub(crate) fn remove(&self, number: &mut Option<RequestNumber>) {
        if let Some(RequestNumber(number)) = number.take() {
            self.0.lock().requests.try_remove(number);
        }
    }
}

impl List {
    /// Adds a request whose time begins now.
    fn add(&mut self, waker: &Waker) -> RequestNumber {
        let period = self.now.saturating_add(self.limit);
        RequestNumber(self.requests.insert(Deadline::In {
            period,
            waker: waker.clone(),
        }))
    }

    /// Begins the next period. Returns the wakers of the requests that are overdue in it, and
    /// whether others wait.
    fn next_period(&mut self) -> (Vec<Waker>, bool) {
        self.now += 1;
        let mut overdue = Vec::new();
        let mut has_waiting = false;
        for (_, deadline) in &mut self.requests {
            match deadline {
                Deadline::In { period, .. } if *period <= self.now => {
                    if let Deadline::In { waker, .. } =
                        std::mem::replace(deadline, Deadline::Passed)
                    {
                        overdue.push(waker);
                    }
                }
                Deadline::In { .. } => has_waiting = true,
                Deadline::Passed => {}
            }
        }
        (overdue, has_waiting)
    }
}

/// Starts the task that counts the periods of a list while requests wait. The result is alive as
/// long as the task; without a runtime, there is none.
fn spawn_timer(list: &Arc<Mutex<List>>, period: Duration) -> Weak<()> {
    let Ok(runtime) = Handle::try_current() else {
        return Weak::new();
    };
    let list = Arc::downgrade(list);
    let timer = Arc::new(());
    let is_running = Arc::downgrade(&timer);
    runtime.spawn(async move {
        let _timer = timer;
        loop {
            sleep(period).await;
            let Some(list) = list.upgrade() else { return };
            if !count_period(&list) {
                return;
            }
        }
    });
    is_running
}

/// Counts a period and wakes the requests that are overdue. Returns false if no request waits: the
/// timer then ends, and the next request starts another one.
fn count_period(list: &Mutex<List>) -> bool {
    let mut locked = list.lock();
    let (overdue, has_waiting) = locked.next_period();
    if !has_waiting {
        locked.timer = Weak::new();
        locked.requests.shrink_to_fit();
    }
    drop(locked);
    overdue.into_iter().for_each(Waker::wake);
    has_waiting
}

#[cfg(test)]
mod tests;
