use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Ends a session of the inner service when the last clone is dropped, unless the endpoint has
/// recorded the session.
///
/// An inner service with sessions puts this guard into the extensions of its response to
/// `initialize`. The endpoint holds that response until it knows the negotiated revision. It does
/// not record the session if the client disconnects before, the revision is not served, or the
/// owner is at the limit with all sessions in use.
#[derive(Clone)]
pub struct BackendSessionGuard(Arc<Inner>);

struct Inner {
    is_armed: AtomicBool,
    end: Box<dyn Fn() + Send + Sync>,
}

impl BackendSessionGuard {
    /// Returns a guard that calls `end` once. `end` must not block.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            is_armed: AtomicBool::new(true),
            end: Box::new(end),
        }))
    }

    /// Disarms all clones: the session is recorded, and the store reports its end.
    pub(crate) fn disarm(self) {
        self.0.is_armed.store(false, Ordering::Relaxed);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if *self.is_armed.get_mut() {
            (self.end)();
        }
    }
}

impl fmt::Debug for BackendSessionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendSessionGuard")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// E11: a session that is not recorded ends once, with the last clone of its guard.
    #[test]
    fn a_session_ends_unless_it_is_recorded() {
        let ended = Arc::new(AtomicUsize::new(0));
        let guard = || {
            let ended = Arc::clone(&ended);
            BackendSessionGuard::new(move || {
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        let one = guard();
        let other = guard();
        let clone = one.clone();
        drop(one);
        assert_eq!(ended.load(Ordering::Relaxed), 0);

        drop(clone);
        assert_eq!(ended.load(Ordering::Relaxed), 1);
        other.clone().disarm();
        drop(other);
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }
}
