//! The time limit of requests that wait for the head of a response: one list and one timer for all of a worker.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

/// The list is looked through at most so often.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// A limit is this many periods at least: what is waited for beyond it is a part of it.
const MIN_PERIODS: u32 = 4;
/// No slot.
const NONE: usize = usize::MAX;

/// The requests of one worker that wait for the head of a response, in the order of their deadlines, which is that of
/// their arrival, since all have the same limit.
///
/// A request takes a slot of memory that is used again, and no timer: one task counts periods while there are requests,
/// and wakes those that are overdue. A deadline is met up to one period late.
pub(crate) struct Deadlines(Arc<Mutex<List>>);

struct List {
    slots: Vec<Slot>,
    /// The first unused slot; `next` leads to the others.
    free: usize,
    /// The request that waits longest, and the one that came last.
    first: usize,
    last: usize,
    /// Periods since the start.
    now: u64,
    period: Duration,
    /// The limit in periods.
    limit: u64,
    /// Whether a task counts periods.
    is_counted: bool,
}

struct Slot {
    /// Empty when the slot is unused, and once its request is overdue.
    waker: Option<Waker>,
    due: u64,
    previous: usize,
    next: usize,
}

/// A request's slot. Its owner gives it back with [`Deadlines::remove`].
#[derive(Debug)]
pub(crate) struct Waiting(usize);

impl Deadlines {
    /// A list for requests that may wait this long.
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
            // The present period has begun already.
            limit: u64::try_from(periods).unwrap_or(u64::MAX).saturating_add(1),
            is_counted: false,
        })))
    }

    /// Whether the request is overdue. Otherwise its task is woken when it is; `waiting` is its slot, which it gets with
    /// the first call.
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

    /// Takes a request from the list, if it is there.
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

    /// Takes the request that waits longest from the list when it is overdue. It keeps its slot.
    fn take_overdue(&mut self) -> Option<Waker> {
        let first = self.slots.get_mut(self.first).filter(|slot| slot.due <= self.now)?;
        let waker = first.waker.take();
        self.unlink(self.first);
        waker
    }
}

/// Starts the task that counts the periods of a list while there are requests in it. Whether there is a runtime for it.
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

/// The list whose periods a task counts. When its runtime ends before it is done, the next request starts another task.
struct Counter(Weak<Mutex<List>>);

impl Counter {
    /// Counts a period and wakes what is overdue. Whether there is more to count; otherwise this is done.
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

    /// A request that is told when it is overdue.
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

    /// Lets time pass in small steps, so that the task that counts sees each period.
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

    /// L9: what has its response in time is not woken, and its slot is used again.
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
        assert!(!is_counted(&deadlines), "nothing runs while nothing waits");
        let late = Request::start(&deadlines);
        pass(LIMIT + MAX_PERIOD * 2).await;
        assert!(late.was_woken());
    }

    /// L9: a list whose task ended with its runtime is counted again by the next one.
    #[test]
    fn runtimes_may_end() {
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

    /// L9: the shortest limits are met, too.
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
        /// L9: requests that stay are woken, and no others, in any order of arrivals and departures.
        #[test]
        fn any_order(steps in prop::collection::vec((any::<bool>(), 0_usize..8), 0..60)) {
            let deadlines = Deadlines::new(LIMIT);
            let mut held: Vec<Request> = Vec::new();
            let mut gone = Vec::new();
            for (comes, at) in steps {
                if comes || held.is_empty() {
                    held.push(Request::start(&deadlines));
                } else {
                    let mut request = held.swap_remove(at % held.len());
                    deadlines.remove(&mut request.waiting);
                    gone.push(request);
                }
            }
            let mut counter = Counter(Arc::downgrade(&deadlines.0));
            while counter.count() {}
            prop_assert!(held.iter_mut().all(|request| request.was_woken() && request.is_overdue(&deadlines)));
            prop_assert!(gone.iter().all(|request| !request.was_woken()));
            held.iter_mut().for_each(|request| deadlines.remove(&mut request.waiting));
        }
    }
}
