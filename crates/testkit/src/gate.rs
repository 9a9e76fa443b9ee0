//! [`Gate`]: delays requests until a test releases them.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Delays requests until it is released. Clones share the state.
#[derive(Clone, Debug)]
pub struct Gate(Arc<GateState>);

/// The state that clones share.
#[derive(Debug)]
struct GateState {
    /// Has no permits, and is closed to release the gate.
    open: Semaphore,
    /// Has a permit for each request that no one has waited for yet.
    arrived: Semaphore,
}

impl Gate {
    /// Creates a closed gate.
    pub(crate) fn new() -> Self {
        Self(Arc::new(GateState {
            open: Semaphore::new(0),
            arrived: Semaphore::new(0),
        }))
    }

    /// Lets all waiting and later requests pass.
    pub fn release(&self) {
        self.0.open.close();
    }

    /// Waits until a request has reached the gate. Each request is counted once.
    pub async fn reached(&self) {
        self.0
            .arrived
            .acquire()
            .await
            .expect("the semaphore is never closed")
            .forget();
    }

    /// Counts a request and waits until the gate is released.
    pub(crate) async fn pass(&self) {
        self.0.arrived.add_permits(1);
        // No permits are added: the wait ends when the semaphore is closed.
        let _ = self.0.open.acquire().await;
    }
}
