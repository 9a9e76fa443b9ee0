use std::sync::Arc;

use tokio::sync::watch;

/// Holds requests back while a handshake is under way. It is open as long as nobody keeps it closed.
#[derive(Clone)]
pub(super) struct Gate(Arc<watch::Sender<usize>>);

/// Keeps a gate closed.
pub(super) struct Closed(Gate);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Gate {
    pub(super) fn close(&self) -> Closed {
        self.0.send_modify(|closed| *closed += 1);
        Closed(self.clone())
    }

    /// Waits until it is open.
    pub(super) async fn pass(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|closed| *closed == 0).await;
    }
}

impl Drop for Closed {
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

        pub(super) fn is_ready(future: impl Future<Output = ()>) -> bool {
            matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
        }
    }

    #[test]
    fn it_opens_when_the_last_one_lets_go() {
        let gate = Gate::default();
        assert!(is_ready(gate.pass()));
        let (first, second) = (gate.close(), gate.close());
        drop(first);
        assert!(!is_ready(gate.pass()));
        drop(second);
        assert!(is_ready(gate.pass()));
    }
}
