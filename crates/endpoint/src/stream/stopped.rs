use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Notifies an inner service that the endpoint has stopped an event stream, so that a service that
/// continues requests of disconnected clients can distinguish the two.
///
/// The service puts it into the extensions of the response. The endpoint sets it before it drops
/// the body of a stream whose authorization or session has ended. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct StreamStopped(Arc<AtomicBool>);

impl StreamStopped {
    /// Returns whether the endpoint has stopped the stream.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Records that the endpoint has stopped the stream.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
