//! Wake-ups that would have a connection polled for nothing.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

/// The wake-ups of one connection, shared with the bodies of its requests.
///
/// hyper hands a request's body over through a channel. Who takes the last piece out of it wakes the connection, which has
/// nothing more to put in: it would be polled once more for each request. What wakes a connection while it is polled is
/// counted here, so that this one can be left out, and all others reach the task.
#[derive(Clone)]
pub(super) struct Wakeups {
    shared: Arc<Shared>,
    waker: Waker,
}

struct Shared {
    polled: AtomicBool,
    /// Since the last poll began.
    count: AtomicUsize,
    task: Mutex<Option<Waker>>,
}

impl Wakeups {
    pub(super) fn new() -> Self {
        let shared =
            Arc::new(Shared { polled: AtomicBool::new(false), count: AtomicUsize::new(0), task: Mutex::default() });
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// Polls the connection.
    pub(super) fn poll<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.shared.begin(cx.waker());
        let polled = poll(&mut Context::from_waker(&self.waker));
        self.shared.end();
        polled
    }

    /// How many there were in this poll.
    pub(super) fn count(&self) -> usize {
        self.shared.count.load(SeqCst)
    }

    /// Leaves one out, if it is the only one after the first `before`.
    pub(super) fn forget_one_after(&self, before: usize) {
        let _ = self.shared.count.compare_exchange(before + 1, before, SeqCst, SeqCst);
    }
}

impl Shared {
    fn begin(&self, task: &Waker) {
        let mut held = self.task();
        match &mut *held {
            Some(held) => held.clone_from(task),
            None => *held = Some(task.clone()),
        }
        drop(held);
        self.count.store(0, SeqCst);
        self.polled.store(true, SeqCst);
    }

    /// Either this or the one that wakes sees the other's write, so that none is lost.
    fn end(&self) {
        self.polled.store(false, SeqCst);
        if self.count.load(SeqCst) > 0 {
            self.wake_task();
        }
    }

    fn wake_task(&self) {
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.count.fetch_add(1, SeqCst);
        if !self.polled.load(SeqCst) {
            self.wake_task();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// Wakes once within a poll, and once after it. How often the task was woken by then.
    fn woken(meanwhile: impl Fn(&Wakeups)) -> (usize, usize) {
        let (wakeups, count) = (Wakeups::new(), Arc::new(Count::default()));
        let mut kept = None;
        let polled: Poll<()> = wakeups.poll(&mut Context::from_waker(&Arc::clone(&count).into()), |cx| {
            cx.waker().wake_by_ref();
            meanwhile(&wakeups);
            kept = Some(cx.waker().clone());
            Poll::Pending
        });
        assert!(polled.is_pending());
        let within = count.0.load(SeqCst);
        kept.unwrap().wake();
        (within, count.0.load(SeqCst))
    }

    #[test]
    fn what_wakes_reaches_the_task_at_the_end_of_the_poll_or_later() {
        assert_eq!(woken(|_| ()), (1, 2));
    }

    #[test]
    fn a_needless_one_is_left_out() {
        assert_eq!(woken(|wakeups| wakeups.forget_one_after(0)), (0, 1));
    }

    /// Nothing that might be somebody else's is left out.
    #[test]
    fn others_stay() {
        assert_eq!(woken(|wakeups| wakeups.forget_one_after(1)), (1, 2));
        assert_eq!(
            woken(|wakeups| {
                wakeups.waker.wake_by_ref();
                wakeups.forget_one_after(0);
            }),
            (1, 2)
        );
    }
}
