//! [`Latch`]: makes tasks wait while a handshake is in progress.

use std::sync::Arc;

use tokio::sync::watch;

/// Makes tasks wait while a handshake is in progress. It is open while no [`LatchGuard`] exists. Clones share their
/// state.
#[derive(Clone)]
pub(crate) struct Latch {
    guards: Arc<watch::Sender<usize>>,
}

/// Keeps a latch closed until it is dropped.
pub(crate) struct LatchGuard {
    guards: Arc<watch::Sender<usize>>,
}

impl Latch {
    /// Closes the latch until the returned guard and all others are dropped.
    pub(crate) fn close(&self) -> LatchGuard {
        self.guards.send_modify(|count| *count += 1);
        LatchGuard { guards: Arc::clone(&self.guards) }
    }

    /// Waits until the latch is open.
    pub(crate) async fn opened(&self) {
        // This fails only if the sender is dropped, which `self` contains.
        let _ = self.guards.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self { guards: Arc::new(watch::Sender::new(0)) }
    }
}

impl Drop for LatchGuard {
    fn drop(&mut self) {
        self.guards.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    #[test]
    fn a_latch_opens_when_the_last_guard_is_dropped() {
        let latch = Latch::default();
        assert!(is_ready(latch.opened()));
        let (first, second) = (latch.close(), latch.close());
        drop(first);
        assert!(!is_ready(latch.opened()));
        drop(second);
        assert!(is_ready(latch.opened()));
    }
}
