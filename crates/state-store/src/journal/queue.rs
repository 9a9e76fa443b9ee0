use std::mem::replace;

use parking_lot::{Mutex, MutexGuard};
use portcullis_session::{EndConfirmation, EndTicket, LastUse, SessionEnd};

/// The maximum number of ends, and of last uses, that wait to be written.
pub(super) const MAX_QUEUED: usize = 262_144;

/// The queue of the records. The threads of requests add to it, and the writer thread takes
/// everything.
#[derive(Default)]
pub(super) struct Queue(Mutex<Waiting>);

/// Records that wait to be written.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) ends: Vec<(SessionEnd, EndConfirmation)>,
    pub(super) uses: Vec<LastUse>,
    /// Confirmed when everything before them is written.
    pub(super) flushes: Vec<EndConfirmation>,
    /// Whether the writer ends when nothing waits.
    pub(super) is_closed: bool,
}

impl Queue {
    /// Locks the queue. No lock is held while the writer writes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock()
    }
}

impl Waiting {
    /// Takes the records. The queue stays closed if it is.
    pub(super) fn take(&mut self) -> Self {
        let is_closed = self.is_closed;
        replace(
            self,
            Self {
                is_closed,
                ..Self::default()
            },
        )
    }

    /// Adds an end. Its ticket fails if 262,144 ends wait.
    pub(super) fn add_end(&mut self, end: SessionEnd) -> EndTicket {
        if self.ends.len() >= MAX_QUEUED {
            return EndTicket::failed();
        }
        let (confirmation, ticket) = EndTicket::pending();
        self.ends.push((end, confirmation));
        ticket
    }

    /// Adds last uses, as far as there is space.
    pub(super) fn add_uses(&mut self, uses: &[LastUse]) {
        let free = MAX_QUEUED.saturating_sub(self.uses.len());
        self.uses.extend(uses.iter().take(free));
    }
}
