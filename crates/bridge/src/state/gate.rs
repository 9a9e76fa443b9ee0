use std::sync::Arc;

use tokio::sync::watch;

/// Makes tasks wait while it is closed. It is closed while a [`GateGuard`] exists. Clones share the
/// state.
#[derive(Clone)]
pub(crate) struct Gate {
    /// The number of guards.
    guards: Arc<watch::Sender<usize>>,
}

/// Keeps a gate closed until it is dropped.
#[must_use = "dropping the guard opens the gate"]
pub(crate) struct GateGuard(Gate);

impl Default for Gate {
    fn default() -> Self {
        Self {
            guards: Arc::new(watch::channel(0).0),
        }
    }
}

impl Gate {
    /// Closes the gate until all of its guards are dropped.
    pub(crate) fn close(&self) -> GateGuard {
        self.guards.send_modify(|guards| *guards += 1);
        GateGuard(self.clone())
    }

    /// Waits until the gate is open.
    pub(crate) async fn opened(&self) {
        // Fails only without a sender, and `self` is one.
        let _ = self
            .guards
            .subscribe()
            .wait_for(|guards| *guards == 0)
            .await;
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.0.guards.send_modify(|guards| *guards -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn is_open(gate: &Gate) -> bool {
        matches!(
            pin!(gate.opened()).poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(())
        )
    }

    #[test]
    fn a_gate_opens_when_its_last_guard_is_dropped() {
        let gate = Gate::default();
        assert!(is_open(&gate));
        let first = gate.close();
        let second = gate.close();
        drop(first);
        assert!(!is_open(&gate));
        drop(second);
        assert!(is_open(&gate));
    }
}
