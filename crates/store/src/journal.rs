//! [`FileJournal`]: the journal of a session store in a state directory.

use std::{
    fmt, io,
    mem::replace,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle, Thread},
    time::Duration,
};

use portcullis_metadata::{Clock, UnixTime};
use portcullis_session::{EndConfirmation, EndTicket, LastUse, SessionEnd, SessionJournal, SessionStore};

use crate::{
    compaction::{needed_ends, needed_uses},
    directory::StateDirectory,
    error::StateError,
    log_file::LogFile,
};

const ENDS: &str = "session-ends";
const USES: &str = "session-uses";
/// The maximum number of ends, and of last uses, that wait to be written.
const MAX_QUEUED: usize = 262_144;

/// How long records matter: the settings of the session store.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// The maximum age of a session.
    pub lifetime: Duration,
    /// The maximum time without use.
    pub idle_timeout: Duration,
}

/// Keeps the ends of sessions and their last uses in a [`StateDirectory`].
///
/// A thread writes them: all ends that wait are written and synced together, and their tickets complete afterwards. If a
/// write fails, the tickets of its ends fail, and the log has one error until a write succeeds again. At most 262,144 ends
/// and as many last uses wait; the tickets of further ends fail, and further last uses are dropped.
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

#[derive(Default)]
struct Queue(Mutex<Waiting>);

/// Records that wait to be written.
#[derive(Default)]
struct Waiting {
    ends: Vec<(SessionEnd, EndConfirmation)>,
    uses: Vec<LastUse>,
    /// Completed when everything before them is written.
    flushes: Vec<EndConfirmation>,
    is_closed: bool,
}

impl FileJournal {
    /// Opens the files of a directory and starts the writer thread. Expired records are removed.
    ///
    /// # Errors
    /// Fails if a file cannot be read or written, has another format, or if the thread cannot be created.
    pub fn open(
        directory: StateDirectory,
        retention: Retention,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Recovered), StateError> {
        let now = clock.now();
        let (ends_file, ends) = LogFile::open(&directory, ENDS, |ends| needed_ends(ends, retention.oldest_end(now)))?;
        let (uses_file, uses) = LogFile::open(&directory, USES, |uses| needed_uses(uses, retention.oldest_use(now)))?;
        let queue = Arc::<Queue>::default();
        let failed_to_start = StateError::io(directory.path());
        let writer =
            Writer { queue: Arc::clone(&queue), directory, retention, clock, ends_file, uses_file, is_failing: false };
        let named = thread::Builder::new().name("session-journal".to_owned());
        let handle = named.spawn(move || writer.run()).map_err(failed_to_start)?;
        Ok((Self { queue, writer: handle.thread().clone(), handle: Some(handle) }, Recovered { ends, uses }))
    }

    /// Returns a ticket that completes when everything that was recorded before has been written, or has failed.
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

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Takes the records. The queue stays closed if it is.
    fn take(&mut self) -> Self {
        let is_closed = self.is_closed;
        replace(self, Self { is_closed, ..Self::default() })
    }

    fn add_end(&mut self, end: SessionEnd) -> EndTicket {
        if self.ends.len() >= MAX_QUEUED {
            return EndTicket::failed();
        }
        let (confirmation, ticket) = EndTicket::pending();
        self.ends.push((end, confirmation));
        ticket
    }

    fn add_uses(&mut self, uses: &[LastUse]) {
        let free = MAX_QUEUED.saturating_sub(self.uses.len());
        self.uses.extend(uses.iter().take(free));
    }
}

impl Retention {
    fn oldest_end(self, now: UnixTime) -> UnixTime {
        now.saturating_sub(self.lifetime)
    }

    fn oldest_use(self, now: UnixTime) -> UnixTime {
        now.saturating_sub(self.idle_timeout)
    }
}

/// The thread that writes.
struct Writer {
    queue: Arc<Queue>,
    directory: StateDirectory,
    retention: Retention,
    clock: Arc<dyn Clock>,
    ends_file: LogFile,
    uses_file: LogFile,
    is_failing: bool,
}

impl Writer {
    fn run(mut self) {
        loop {
            let Waiting { ends, uses, flushes, is_closed } = self.queue.lock().take();
            if ends.is_empty() && uses.is_empty() && flushes.is_empty() {
                if is_closed {
                    return;
                }
                thread::park();
                continue;
            }
            self.write(ends, &uses);
            flushes.into_iter().for_each(EndConfirmation::confirm);
            self.compact();
        }
    }

    /// Writes what waited. If this fails, the tickets of the ends fail because their confirmations are dropped.
    fn write(&mut self, ends: Vec<(SessionEnd, EndConfirmation)>, uses: &[LastUse]) {
        let mut result = Ok(());
        if !ends.is_empty() {
            result = self.ends_file.append(ends.iter().map(|(end, _)| end)).and_then(|()| self.ends_file.sync());
            if result.is_ok() {
                ends.into_iter().for_each(|(_, confirmation)| confirmation.confirm());
            }
        }
        if !uses.is_empty() {
            // Not synced: after a power failure, an earlier use counts.
            result = result.and(self.uses_file.append(uses));
        }
        self.report(&result);
    }

    fn report(&mut self, result: &io::Result<()>) {
        match result {
            Ok(()) if self.is_failing => tracing::info!("the state directory is written again"),
            Err(error) if !self.is_failing => tracing::error!(
                state.directory = %self.directory.path().display(), error = %error,
                "the state directory cannot be written; deleting a session fails until it can"
            ),
            _ => {}
        }
        self.is_failing = result.is_err();
    }

    fn compact(&mut self) {
        let now = self.clock.now();
        let (oldest_end, oldest_use) = (self.retention.oldest_end(now), self.retention.oldest_use(now));
        let ends = self.ends_file.compact(&self.directory, |ends| needed_ends(ends, oldest_end));
        let uses = self.uses_file.compact(&self.directory, |uses| needed_uses(uses, oldest_use));
        if let Err(error) = ends.and(uses) {
            tracing::warn!(error = %error, "a file of the state directory cannot be rewritten and grows");
        }
    }
}

#[cfg(test)]
mod tests;
