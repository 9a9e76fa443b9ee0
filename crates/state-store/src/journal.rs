//! [`FileJournal`]: the journal of a session store in a state directory.

mod queue;
mod writer;

use std::{
    fmt,
    sync::Arc,
    thread::{self, JoinHandle, Thread},
};

use portcullis_metadata::Clock;
use portcullis_session::{EndTicket, LastUse, SessionEnd, SessionJournal, SessionStore};

use self::{queue::Queue, writer::Writer};
use crate::{
    compaction::{needed_ends, needed_uses},
    directory::StateDirectory,
    error::StateError,
    file_names::{ENDS, USES},
    log_file::LogFile,
    retention::Retention,
};

/// Keeps the ends of sessions and their last uses in a [`StateDirectory`].
///
/// A thread writes them: all ends that wait are written and synced together, and their tickets
/// complete afterwards. If a write fails, the tickets of its ends fail, and the log has one error
/// until a write succeeds again. At most 262,144 ends and as many last uses wait; the tickets of
/// further ends fail, and further last uses are dropped.
///
/// Dropping the journal writes what waits.
pub struct FileJournal {
    queue: Arc<Queue>,
    writer: Thread,
    handle: Option<JoinHandle<()>>,
}

/// What an earlier process has recorded.
#[derive(Debug, Default)]
pub struct Recovered {
    ends: Vec<SessionEnd>,
    uses: Vec<LastUse>,
}

impl Recovered {
    /// Adds the records to a store. Call this before the store is used.
    pub fn import_into(self, sessions: &SessionStore) {
        self.ends.iter().for_each(|end| sessions.import(end));
        sessions.import_last_uses(&self.uses);
    }
}

impl FileJournal {
    /// Opens the files of a directory and starts the writer thread. Expired records are removed.
    ///
    /// `unknown` is the end that a journal without a file of ends begins with: if the directory was
    /// replaced, or the file was moved away, the ends of earlier processes are not known, and their
    /// sessions must not continue if the keys are still in use. `None` if there can be no such
    /// sessions, or their ends are known elsewhere.
    ///
    /// # Errors
    /// Fails if a file cannot be read or written, has another format, or is damaged, or if the
    /// thread cannot be created.
    pub fn open(
        directory: StateDirectory,
        retention: Retention,
        clock: Arc<dyn Clock>,
        unknown: Option<SessionEnd>,
    ) -> Result<(Self, Recovered), StateError> {
        let now = clock.now();
        let first = || {
            if unknown.is_some() {
                tracing::warn!(
                    state.directory = %directory.path().display(),
                    "the state directory has no record of ended sessions, so that all sessions opened before now have ended"
                );
            }
            unknown.into_iter().collect()
        };
        // The rewritten file has no end that would never expire.
        let limited = |end: SessionEnd| end.limited_to(Retention::latest_end(now));
        let needed = |ends: Vec<_>| {
            needed_ends(
                ends.into_iter().filter_map(limited),
                retention.oldest_end(now),
            )
        };
        let (ends_file, ends) = LogFile::open(&directory, ENDS, first, needed)?;
        let needed = |uses| needed_uses(uses, retention.oldest_use(now));
        let (uses_file, uses) = LogFile::open(&directory, USES, Vec::new, needed)?;
        let queue = Arc::<Queue>::default();
        let failed_to_start = StateError::io(directory.path());
        let writer = Writer {
            queue: Arc::clone(&queue),
            directory,
            retention,
            clock,
            ends_file,
            uses_file,
            is_failing: false,
        };
        let named = thread::Builder::new().name("session-journal".to_owned());
        let handle = named.spawn(move || writer.run()).map_err(failed_to_start)?;
        Ok((
            Self {
                queue,
                writer: handle.thread().clone(),
                handle: Some(handle),
            },
            Recovered { ends, uses },
        ))
    }

    /// Returns a ticket that completes when everything that was recorded before has been written,
    /// or has failed.
    pub fn flush(&self) -> EndTicket {
        let (confirmation, ticket) = EndTicket::pending();
        self.queue.lock().flushes.push(confirmation);
        self.writer.unpark();
        ticket
    }
}

impl SessionJournal for FileJournal {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        let ticket = self.queue.lock().add_end(*end);
        self.writer.unpark();
        ticket
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        self.queue.lock().add_uses(uses);
        self.writer.unpark();
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.writer.unpark();
        if let Some(handle) = self.handle.take() {
            // The thread does not panic, and an error could not be reported here.
            let _ = handle.join();
        }
    }
}

impl fmt::Debug for FileJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileJournal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
