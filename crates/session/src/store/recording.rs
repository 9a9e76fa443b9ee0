//! The last uses of sessions, which the journal keeps outside the process.

use std::{sync::atomic::Ordering, time::Duration};

use portcullis_metadata::Now;

use super::SessionStore;
use crate::{
    journal::{JOURNAL_BATCH, LastUse},
    live_session::{Session, millis},
    peer_sessions::RECORD_INTERVAL,
};

impl SessionStore {
    /// How often [`record_last_uses`](Self::record_last_uses) should be called: 30 s.
    pub const RECORD_INTERVAL: Duration = RECORD_INTERVAL;

    /// Records in the journal the last uses of the sessions that were used since the previous call,
    /// and announces all sessions to other processes. Call this every
    /// [`RECORD_INTERVAL`](Self::RECORD_INTERVAL), and before the process ends.
    ///
    /// A session that is not [sealed](Session::is_sealed) is not recorded: no process can continue
    /// it.
    pub fn record_last_uses(&self) {
        let now = self.0.clock.read();
        let previous = self
            .0
            .last_uses_recorded
            .swap(millis(now.monotonic), Ordering::AcqRel);
        let sessions = self.0.table.iter();
        let uses: Vec<_> = sessions
            .filter_map(|session| last_use_since(&session, previous, now))
            .collect();
        uses.chunks(JOURNAL_BATCH)
            .for_each(|uses| self.0.journal.record_last_uses(uses));
        self.0.announce_all();
    }

    /// Adds the last uses that other processes have recorded, or this one before a restart.
    ///
    /// Uses that are older than the idle timeout are ignored. A use in the future, up to 5 s ahead
    /// of this process's clock, counts as what it is; a later one counts as one 5 s ahead. At most
    /// twice [`max_total`](crate::SessionSettings::max_total) are kept.
    pub fn import_last_uses(&self, uses: &[LastUse]) {
        let now = self.0.clock.now();
        let oldest = now.saturating_sub(Duration::from_millis(self.0.timeouts.idle));
        self.0.last_uses.import(
            uses,
            oldest..=now.saturating_add(Self::MAX_CLOCK_DIFFERENCE),
        );
    }
}

/// Returns the last use of a session; `None` if the session was not used since `previous`, in
/// milliseconds of the monotonic clock, has ended, or is not sealed.
fn last_use_since(session: &Session, previous: u64, now: Now) -> Option<LastUse> {
    let last_used = session.last_used()?;
    let is_in_use = session.is_in_use();
    if !session.is_sealed() || !(is_in_use || last_used >= previous) {
        return None;
    }
    // The journal keeps times of the wall clock.
    let age = Duration::from_millis(millis(now.monotonic).saturating_sub(last_used));
    let time = if is_in_use {
        now.unix
    } else {
        now.unix.saturating_sub(age)
    };
    Some(LastUse {
        session: *session.id(),
        time,
    })
}
