//! Requests time out in their order, on any runtime.

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
        let mut request = Self {
            number: None,
            woken: Arc::default(),
        };
        assert!(!request.is_overdue(deadlines));
        request
    }

    fn is_overdue(&mut self, deadlines: &Deadlines) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        deadlines
            .poll_overdue(&mut self.number, &Context::from_waker(&waker))
            .is_ready()
    }

    fn was_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst) > 0
    }
}

fn waiting(deadlines: &Deadlines) -> usize {
    deadlines.0.lock().requests.len()
}

fn has_timer(deadlines: &Deadlines) -> bool {
    deadlines.0.lock().timer.strong_count() > 0
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
    assert!(!first.was_woken());
    assert!(!first.is_overdue(&deadlines));

    pass(MAX_PERIOD * 2).await;
    assert!(first.was_woken());
    assert!(first.is_overdue(&deadlines));
    assert!(!second.was_woken());
    assert!(!second.is_overdue(&deadlines));

    pass(LIMIT / 2).await;
    assert!(second.was_woken());
    assert!(second.is_overdue(&deadlines));
    for mut request in [first, second] {
        deadlines.remove(&mut request.number);
    }
}

/// L9: a request whose response arrives in time is not woken and leaves the list.
#[tokio::test(start_paused = true)]
async fn answered_requests_leave_the_list() {
    let deadlines = Deadlines::new(LIMIT);
    for _ in 0..100 {
        let mut one = Request::start(&deadlines);
        let mut two = Request::start(&deadlines);
        pass(Duration::from_millis(20)).await;
        deadlines.remove(&mut one.number);
        deadlines.remove(&mut two.number);
        assert!(!one.was_woken());
        assert!(!two.was_woken());
    }
    assert_eq!(waiting(&deadlines), 0);

    pass(LIMIT).await;
    assert!(
        !has_timer(&deadlines),
        "the task ends when the list is empty"
    );
    let late = Request::start(&deadlines);
    pass(LIMIT + MAX_PERIOD * 2).await;
    assert!(late.was_woken());
}

/// L9: if a task ends with its runtime, the next request starts another one.
#[test]
fn the_task_is_restarted_on_another_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
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
