//! [`Deadlines`]: the deadlines of requests that wait for the head of a response, with one timer per worker.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, time::sleep};

/// The maximum time between two checks of the list, and so the maximum delay of a deadline.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// The minimum number of periods in a limit. It bounds the delay of a deadline to a part of the limit.
const MIN_PERIODS: u32 = 4;

/// The requests of one worker that wait for the head of a response, all with the same time limit.
///
/// A request has no timer of its own: while requests wait, one task counts periods and wakes the requests that are
/// overdue. A request is woken up to one period after its deadline.
pub(crate) struct Deadlines(Arc<Mutex<List>>);

/// The list and the state of its timer.
struct List {
    /// The requests that wait, in the order of their arrival, which is also that of their deadlines.
    waiting: BTreeMap<RequestNumber, Waiting>,
    next_number: RequestNumber,
    /// The number of periods since the start.
    now: u64,
    period: Duration,
    /// The time limit in periods.
    limit: u64,
    /// Alive while a task counts the periods.
    timer: Weak<()>,
}

/// Identifies a request in the list. Its owner removes the request with [`Deadlines::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestNumber(u64);

/// A request that waits.
struct Waiting {
    waker: Waker,
    /// The period in which the request is overdue.
    due: u64,
}

impl Deadlines {
    /// Creates a list for requests with this time limit.
    pub(crate) fn new(limit: Duration) -> Self {
        let period = (limit / MIN_PERIODS).clamp(Duration::from_millis(1), MAX_PERIOD);
        let periods = limit.as_nanos().div_ceil(period.as_nanos());
        Self(Arc::new(Mutex::new(List {
            waiting: BTreeMap::new(),
            next_number: RequestNumber(0),
            now: 0,
            period,
            // The current period has already begun.
            limit: u64::try_from(periods).unwrap_or(u64::MAX).saturating_add(1),
            timer: Weak::new(),
        })))
    }

    /// Completes when the request is overdue. The first call adds the request to the list and sets `number`.
    pub(crate) fn poll_overdue(&self, number: &mut Option<RequestNumber>, cx: &Context<'_>) -> Poll<()> {
        let mut list = self.0.lock();
        let Some(number) = number else {
            *number = Some(list.add(cx.waker()));
            if list.timer.strong_count() == 0 {
                list.timer = spawn_timer(&self.0, list.period);
            }
            return Poll::Pending;
        };
        match list.waiting.get_mut(number) {
            Some(waiting) => {
                waiting.waker.clone_from(cx.waker());
                Poll::Pending
            }
            // The timer has removed the request.
            None => Poll::Ready(()),
        }
    }

    /// Removes a request, if it was added.
    pub(crate) fn remove(&self, number: &mut Option<RequestNumber>) {
        if let Some(number) = number.take() {
            self.0.lock().waiting.remove(&number);
        }
    }
}

impl List {
    /// Adds a request whose time begins now.
    fn add(&mut self, waker: &Waker) -> RequestNumber {
        let number = self.next_number;
        self.next_number = RequestNumber(number.0 + 1);
        let waiting = Waiting { waker: waker.clone(), due: self.now.saturating_add(self.limit) };
        self.waiting.insert(number, waiting);
        number
    }

    /// Removes the requests that are overdue and returns their wakers.
    fn take_overdue(&mut self) -> Vec<Waker> {
        let mut overdue = Vec::new();
        while let Some(first) = self.waiting.first_entry().filter(|first| first.get().due <= self.now) {
            overdue.push(first.remove().waker);
        }
        overdue
    }
}

/// Starts the task that counts the periods of a list while requests wait. The result is alive as long as the task;
/// without a runtime, there is none.
fn spawn_timer(list: &Arc<Mutex<List>>, period: Duration) -> Weak<()> {
    let Ok(runtime) = Handle::try_current() else { return Weak::new() };
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

/// Counts a period and wakes the requests that are overdue. Returns false if no request waits: the timer then ends, and the
/// next request starts another one.
fn count_period(list: &Mutex<List>) -> bool {
    let mut locked = list.lock();
    locked.now += 1;
    let overdue = locked.take_overdue();
    let is_needed = !locked.waiting.is_empty();
    if !is_needed {
        locked.timer = Weak::new();
    }
    drop(locked);
    overdue.into_iter().for_each(Waker::wake);
    is_needed
}

#[cfg(test)]
mod tests;
