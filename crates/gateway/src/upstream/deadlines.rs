//! The deadlines of requests that wait for the head of a response: one list and one timer per worker.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

/// The maximum time between two checks of the list.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// The minimum number of periods in a limit. It bounds the delay of a deadline to a part of the limit.
const MIN_PERIODS: u32 = 4;
/// The index that stands for no slot.
const NONE: usize = usize::MAX;

/// The requests of one worker that wait for the head of a response. All have the same limit, so the order of their
/// arrival is the order of their deadlines.
///
/// A request has a reusable slot and no timer of its own: while there are requests, one task counts periods and wakes
/// the requests that are overdue. A request is woken up to one period after its deadline.
pub(crate) struct Deadlines(Arc<Mutex<List>>);

struct List {
    slots: Vec<Slot>,
    /// The first unused slot. `next` links it to the others.
    free: usize,
    /// The slots of the oldest and of the newest request.
    first: usize,
    last: usize,
    /// The number of periods since the start.
    now: u64,
    period: Duration,
    /// The limit in periods.
    limit: u64,
    /// Whether a task counts the periods.
    is_counted: bool,
}

struct Slot {
    /// `None` if the slot is unused or its request is overdue.
    waker: Option<Waker>,
    due: u64,
    previous: usize,
    next: usize,
}

/// The slot of a request. Its owner returns it with [`Deadlines::remove`].
#[derive(Debug)]
pub(crate) struct Waiting(usize);

impl Deadlines {
    /// Creates a list for requests with this time limit.
    pub(crate) fn new(limit: Duration) -> Self {
        let period = (limit / MIN_PERIODS).clamp(Duration::from_millis(1), MAX_PERIOD);
        let periods = limit.as_nanos().div_ceil(period.as_nanos());
        Self(Arc::new(Mutex::new(List {
            slots: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            now: 0,
            period,
            // The current period has already begun.
            limit: u64::try_from(periods).unwrap_or(u64::MAX).saturating_add(1),
            is_counted: false,
        })))
    }

    /// Completes when the request is overdue. The first call assigns the request's slot to `waiting`.
    pub(crate) fn poll_overdue(&self, waiting: &mut Option<Waiting>, cx: &Context<'_>) -> Poll<()> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting {
            None => {
                *waiting = Some(Waiting(list.add(cx.waker())));
                if !list.is_counted {
                    list.is_counted = count_periods(&self.0, list.period);
                }
                Poll::Pending
            }
            Some(Waiting(slot)) => match &mut list.slots[*slot].waker {
                None => Poll::Ready(()),
                Some(waker) => {
                    waker.clone_from(cx.waker());
                    Poll::Pending
                }
            },
        }
    }

    /// Removes a request from the list, if it has a slot.
    pub(crate) fn remove(&self, waiting: &mut Option<Waiting>) {
        if let Some(Waiting(slot)) = waiting.take() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(slot);
        }
    }
}

impl List {
    fn add(&mut self, waker: &Waker) -> usize {
        let due = self.now.saturating_add(self.limit);
        let added = Slot { waker: Some(waker.clone()), due, previous: self.last, next: NONE };
        let slot = match self.free {
            NONE => {
                self.slots.push(added);
                self.slots.len() - 1
            }
            free => {
                self.free = self.slots[free].next;
                self.slots[free] = added;
                free
            }
        };
        match self.last {
            NONE => self.first = slot,
            last => self.slots[last].next = slot,
        }
        self.last = slot;
        slot
    }

    fn remove(&mut self, slot: usize) {
        if self.slots[slot].waker.take().is_some() {
            self.unlink(slot);
        }
        self.slots[slot].next = self.free;
        self.free = slot;
    }

    fn unlink(&mut self, slot: usize) {
        let Slot { previous, next, .. } = self.slots[slot];
        match previous {
            NONE => self.first = next,
            previous => self.slots[previous].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.slots[next].previous = previous,
        }
    }

    /// Removes the oldest request from the list if it is overdue, and returns its waker. The request keeps its slot.
    fn take_overdue(&mut self) -> Option<Waker> {
        let first = self.slots.get_mut(self.first).filter(|slot| slot.due <= self.now)?;
        let waker = first.waker.take();
        self.unlink(self.first);
        waker
    }
}

/// Starts the task that counts the periods of a list while it has requests. Returns whether there is a runtime for it.
fn count_periods(list: &Arc<Mutex<List>>, period: Duration) -> bool {
    let Ok(runtime) = Handle::try_current() else { return false };
    let mut counter = Counter(Arc::downgrade(list));
    runtime.spawn(async move {
        loop {
            sleep(period).await;
            if !counter.count() {
                return;
            }
        }
    });
    true
}

/// The list whose periods a task counts. If the runtime drops the task, the next request starts another one.
struct Counter(Weak<Mutex<List>>);

impl Counter {
    /// Counts a period and wakes the requests that are overdue. Returns false if the list is empty and the task ends.
    fn count(&mut self) -> bool {
        let Some(list) = self.0.upgrade() else { return false };
        let mut locked = list.lock().unwrap_or_else(PoisonError::into_inner);
        locked.now += 1;
        while let Some(waker) = locked.take_overdue() {
            drop(locked);
            waker.wake();
            locked = list.lock().unwrap_or_else(PoisonError::into_inner);
        }
        locked.is_counted = locked.first != NONE;
        if !locked.is_counted {
            self.0 = Weak::new();
        }
        locked.is_counted
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(list) = self.0.upgrade() {
            list.lock().unwrap_or_else(PoisonError::into_inner).is_counted = false;
        }
    }
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
        waiting: Option<Waiting>,
        woken: Arc<Woken>,
    }

    impl Request {
        fn start(deadlines: &Deadlines) -> Self {
            let mut request = Self { waiting: None, woken: Arc::default() };
            assert!(!request.is_overdue(deadlines));
            request
        }

        fn is_overdue(&mut self, deadlines: &Deadlines) -> bool {
            let waker = Waker::from(Arc::clone(&self.woken));
            deadlines.poll_overdue(&mut self.waiting, &Context::from_waker(&waker)).is_ready()
        }

        fn was_woken(&self) -> bool {
            self.woken.0.load(Ordering::SeqCst) > 0
        }
    }

    fn slots(deadlines: &Deadlines) -> usize {
        deadlines.0.lock().unwrap().slots.len()
    }

    fn is_counted(deadlines: &Deadlines) -> bool {
        deadlines.0.lock().unwrap().is_counted
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
            deadlines.remove(&mut request.waiting);
        }
    }

    /// L9: a request whose response arrives in time is not woken, and its slot is reused.
    #[tokio::test(start_paused = true)]
    async fn answered_requests_leave_the_list() {
        let deadlines = Deadlines::new(LIMIT);
        for _ in 0..100 {
            let (mut one, mut two) = (Request::start(&deadlines), Request::start(&deadlines));
            pass(Duration::from_millis(20)).await;
            deadlines.remove(&mut one.waiting);
            deadlines.remove(&mut two.waiting);
            assert!(!one.was_woken() && !two.was_woken());
        }
        assert_eq!(slots(&deadlines), 2);
        pass(LIMIT).await;
        assert!(!is_counted(&deadlines), "the task ends when the list is empty");
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
        assert!(is_counted(&deadlines));
        drop(first);
        assert!(!is_counted(&deadlines));
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
                    deadlines.remove(&mut request.waiting);
                    removed.push(request);
                }
            }
            let mut counter = Counter(Arc::downgrade(&deadlines.0));
            while counter.count() {}
            prop_assert!(waiting.iter_mut().all(|request| request.was_woken() && request.is_overdue(&deadlines)));
            prop_assert!(removed.iter().all(|request| !request.was_woken()));
            waiting.iter_mut().for_each(|request| deadlines.remove(&mut request.waiting));
        }
    }
}
