//! The guard of a session that the inner service has opened and that is not recorded yet.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Ends a session of the inner service when its last clone is dropped, unless the endpoint has recorded the session.
///
/// An inner service whose sessions somebody must end puts it into the extensions of its answer to `initialize`. The endpoint holds that
/// answer back until it knows the negotiated revision; the client can go away meanwhile, and the revision can be one that is not served.
#[derive(Clone)]
pub struct BackendSessionGuard(Arc<Guard>);

struct Guard {
    is_recorded: AtomicBool,
    end: Box<dyn Fn() + Send + Sync>,
}

impl BackendSessionGuard {
    /// Calls `end` once if the session is not recorded. It must not block.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Guard { is_recorded: AtomicBool::new(false), end: Box::new(end) }))
    }

    /// The session is recorded: from now on the store ends it.
    pub(crate) fn disarm(self) {
        self.0.is_recorded.store(true, Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !*self.is_recorded.get_mut() {
            (self.end)();
        }
    }
}

impl fmt::Debug for BackendSessionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendSessionGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// E11: what is not recorded ends once, with its last clone.
    #[test]
    fn a_session_ends_unless_it_is_recorded() {
        let ended = Arc::new(AtomicUsize::new(0));
        let guard = || {
            let ended = Arc::clone(&ended);
            BackendSessionGuard::new(move || {
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        let (one, other) = (guard(), guard());
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
