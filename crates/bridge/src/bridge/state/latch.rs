//! [`Latch`]: makes tasks wait while a handshake is in progress.

use std::sync::Arc;

use tokio::sync::watch;

/// Makes requests wait during a handshake. It is open while no guard exists.
#[derive(Clone)]
pub(crate) struct Latch(Arc<watch::Sender<usize>>);

/// Keeps a latch closed.
pub(crate) struct LatchGuard(Latch);

impl Default for Latch {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Latch {
    pub(crate) fn close(&self) -> LatchGuard {
        self.0.send_modify(|closed| *closed += 1);
        LatchGuard(self.clone())
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|closed| *closed == 0).await;
    }
}

impl Drop for LatchGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|closed| *closed -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_like::is_ready;

    use super::*;

    mod futures_like {
        use std::{
            future::Future,
            pin::pin,
            task::{Context, Poll, Waker},
        };

        pub(crate) fn is_ready(future: impl Future<Output = ()>) -> bool {
            matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
        }
    }

    #[test]
    fn it_opens_when_the_last_one_lets_go() {
        let latch = Latch::default();
        assert!(is_ready(latch.opened()));
        let (first, second) = (latch.close(), latch.close());
        drop(first);
        assert!(!is_ready(latch.opened()));
        drop(second);
        assert!(is_ready(latch.opened()));
    }
}
