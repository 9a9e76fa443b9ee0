//! The deadlines of requests that wait for the head of a response: one list and one timer per worker.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

/// The maximum time between two checks of the list.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// The minimum number of periods in a limit. It bounds the delay of a deadline to a part of the limit.
const MIN_PERIODS: u32 = 4;

/// The requests of one worker that wait for the head of a response, all with the same time limit.
///
/// A request has no timer of its own: while requests wait, one task counts periods and wakes the requests that are
/// overdue. A request is woken up to one period after its deadline.
pub(crate) struct Deadlines(Arc<Mutex<List>>);

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
        let mut list = lock(&self.0);
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
            lock(&self.0).waiting.remove(&number);
        }
    }
}

impl List {
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
    let (list, timer) = (Arc::downgrade(list), Arc::new(()));
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
    let mut locked = lock(list);
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

fn lock(list: &Mutex<List>) -> MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use proptest::prelude::*;
    use tokio::time::{Instant, advance};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A request whose waker counts its calls.
    struct Request {
        number: Option<RequestNumber>,
        woken: Arc<Woken>,
    }

    impl Request {
        fn start(deadlines: &Deadlines) -> Self {
            let mut request = Self { number: None, woken: Arc::default() };
            assert!(!request.is_overdue(deadlines));
            request
        }

        fn is_overdue(&mut self, deadlines: &Deadlines) -> bool {
            let waker = Waker::from(Arc::clone(&self.woken));
            deadlines.poll_overdue(&mut self.number, &Context::from_waker(&waker)).is_ready()
        }

        fn was_woken(&self) -> bool {
            self.woken.0.load(Ordering::SeqCst) > 0
        }
    }

    fn waiting(deadlines: &Deadlines) -> usize {
        lock(&deadlines.0).waiting.len()
    }

    fn has_timer(deadlines: &Deadlines) -> bool {
        lock(&deadlines.0).timer.strong_count() > 0
    }

    /// Advances the time in small steps, so that the counting task runs in each period.
    async fn pass(time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
    }

    /// L9: each request is woken at its own deadline, at most one period late.
    #[tokio::test(start_paused = true)]
    async fn requests_are_woken_in_their_order() {
        let deadlines = Deadlines::new(LIMIT);
        let mut first = Request::start(&deadlines);
        pass(LIMIT / 2).await;
        let mut second = Request::start(&deadlines);
        pass(LIMIT / 2 - Duration::from_millis(100)).await;
        assert!(!first.was_woken() && !first.is_overdue(&deadlines));
        pass(MAX_PERIOD * 2).await;
        assert!(first.was_woken() && first.is_overdue(&deadlines));
        assert!(!second.was_woken() && !second.is_overdue(&deadlines));
        pass(LIMIT / 2).await;
        assert!(second.was_woken() && second.is_overdue(&deadlines));
        for mut request in [first, second] {
            deadlines.remove(&mut request.number);
        }
    }

    /// L9: a request whose response arrives in time is not woken and leaves the list.
    #[tokio::test(start_paused = true)]
    async fn answered_requests_leave_the_list() {
        let deadlines = Deadlines::new(LIMIT);
        for _ in 0..100 {
            let (mut one, mut two) = (Request::start(&deadlines), Request::start(&deadlines));
            pass(Duration::from_millis(20)).await;
            deadlines.remove(&mut one.number);
            deadlines.remove(&mut two.number);
            assert!(!one.was_woken() && !two.was_woken());
        }
        assert_eq!(waiting(&deadlines), 0);
        pass(LIMIT).await;
        assert!(!has_timer(&deadlines), "the task ends when the list is empty");
        let late = Request::start(&deadlines);
        pass(LIMIT + MAX_PERIOD * 2).await;
        assert!(late.was_woken());
    }

    /// L9: if a task ends with its runtime, the next request starts another one.
    #[test]
    fn the_task_is_restarted_on_another_runtime() {
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let deadlines = Deadlines::new(LIMIT);
        let first = runtime();
        let _entered = first.block_on(async { Request::start(&deadlines) });
        assert!(has_timer(&deadlines));
        drop(first);
        assert!(!has_timer(&deadlines));
        runtime().block_on(async {
            let request = Request::start(&deadlines);
            pass(LIMIT + MAX_PERIOD * 2).await;
            assert!(request.was_woken());
        });
    }

    /// L9: short limits are enforced, too.
    #[tokio::test(start_paused = true)]
    async fn short_limits() {
        let deadlines = Deadlines::new(Duration::from_secs(1));
        let request = Request::start(&deadlines);
        pass(Duration::from_millis(950)).await;
        assert!(!request.was_woken());
        pass(Duration::from_millis(400)).await;
        assert!(request.was_woken());
    }

    proptest! {
        /// L9: exactly the requests that remain are woken, in any order of arrivals and departures.
        #[test]
        fn any_order(steps in prop::collection::vec((any::<bool>(), 0_usize..8), 0..60)) {
            let deadlines = Deadlines::new(LIMIT);
            let mut waiting: Vec<Request> = Vec::new();
            let mut removed = Vec::new();
            for (arrives, position) in steps {
                if arrives || waiting.is_empty() {
                    waiting.push(Request::start(&deadlines));
                } else {
                    let mut request = waiting.swap_remove(position % waiting.len());
                    deadlines.remove(&mut request.number);
                    removed.push(request);
                }
            }
            while count_period(&deadlines.0) {}
            prop_assert!(waiting.iter_mut().all(|request| request.was_woken() && request.is_overdue(&deadlines)));
            prop_assert!(removed.iter().all(|request| !request.was_woken()));
            waiting.iter_mut().for_each(|request| deadlines.remove(&mut request.number));
        }
    }
}
