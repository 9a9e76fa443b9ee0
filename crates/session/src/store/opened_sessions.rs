//! [`OpenedSessions`]: the sessions that wait to be announced to other processes.

use std::mem::take;

use parking_lot::Mutex;

use crate::identifier::SessionId;

/// The maximum number of new sessions that wait for
/// [`SessionStore::announce_opened`](super::SessionStore::announce_opened). Further ones are
/// announced with all others.
const MAX_OPENED: usize = 65_536;

/// The sessions that were opened and are not announced yet, by their ids.
#[derive(Default)]
pub(super) struct OpenedSessions(Mutex<Vec<SessionId>>);

impl OpenedSessions {
    /// Adds a session, unless 65,536 wait.
    pub(super) fn add(&self, session: SessionId) {
        let mut opened = self.0.lock();
        if opened.len() < MAX_OPENED {
            opened.push(session);
        }
    }

    pub(super) fn take(&self) -> Vec<SessionId> {
        take(&mut self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E13: no memory is filled if sessions are opened and never announced.
    #[test]
    fn waiting_announcements_are_bounded() {
        let opened = OpenedSessions::default();
        (0..MAX_OPENED + 2).for_each(|_| opened.add([1; 16]));
        assert_eq!(opened.take().len(), MAX_OPENED);
        assert_eq!(opened.take().len(), 0);
    }
}
