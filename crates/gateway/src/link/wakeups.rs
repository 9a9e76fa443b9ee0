use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

/// How often one poll goes round at most. A poll that is out of its budget wakes itself each time it is asked.
const ROUNDS: usize = 4;

/// The wake-ups of a connection that is polled by whoever uses it.
///
/// hyper's connection and the request or body that it serves wake each other through channels. Both are polled by one
/// task here: each of these wake-ups would have the runtime poll that task once more, for nothing. So what wakes while
/// it is polled is polled again at once, and only what wakes later reaches the task.
pub(crate) struct Wakeups {
    shared: Arc<Shared>,
    waker: Waker,
}

struct Shared {
    polled: AtomicBool,
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wakeups {
    pub(crate) fn new() -> Self {
        let shared =
            Arc::new(Shared { polled: AtomicBool::new(false), woken: AtomicBool::new(false), task: Mutex::default() });
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// Polls until it is ready, or has not been woken meanwhile.
    pub(crate) fn poll<T>(&self, cx: &mut Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.shared.begin(cx.waker());
        let mut inner = Context::from_waker(&self.waker);
        let mut rounds = 0;
        loop {
            if let Poll::Ready(ready) = poll(&mut inner) {
                self.shared.polled.store(false, SeqCst);
                return Poll::Ready(ready);
            }
            rounds += 1;
            if rounds == ROUNDS || !self.shared.woken.swap(false, SeqCst) {
                break;
            }
        }
        self.shared.end();
        Poll::Pending
    }

    /// Nobody uses the connection any more: there is no task to wake.
    pub(crate) fn forget_task(&self) {
        *self.shared.task() = None;
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
        self.polled.store(true, SeqCst);
        self.woken.store(false, SeqCst);
    }

    /// What has woken since the last look has to reach the task. Either this or the one that wakes sees the other's
    /// write.
    fn end(&self) {
        self.polled.store(false, SeqCst);
        if self.woken.swap(false, SeqCst) {
            self.wake_task();
        }
    }

    fn wake_task(&self) {
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, SeqCst);
        if !self.polled.load(SeqCst) {
            self.wake_task();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What a poll wakes itself for is seen to at once; what wakes afterwards wakes the task, until it is forgotten.
    #[test]
    fn only_later_wake_ups_reach_the_task() {
        let (wakeups, count) = (Wakeups::new(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&task);
        let woken = || count.0.load(Ordering::Relaxed);

        let (mut polls, mut kept) = (0, None);
        let polled: Poll<()> = wakeups.poll(&mut cx, |cx| {
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
            }
            kept = Some(cx.waker().clone());
            Poll::Pending
        });
        assert_eq!((polled, polls, woken()), (Poll::Pending, 2, 0));
        let kept = kept.unwrap();
        kept.wake_by_ref();
        assert_eq!(woken(), 1);
        wakeups.forget_task();
        kept.wake();
        assert_eq!(woken(), 1);
    }

    /// A poll that wakes itself for ever leaves the rest to the runtime.
    #[test]
    fn a_poll_that_never_rests_is_left_to_the_runtime() {
        let (wakeups, count) = (Wakeups::new(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let mut polls = 0;
        let polled: Poll<()> = wakeups.poll(&mut Context::from_waker(&task), |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, count.0.load(Ordering::Relaxed)), (ROUNDS, 1));
    }
}
