//! [`Writer`]: the thread that writes records to files.

use std::{io, sync::Arc, thread};

use portcullis_metadata::Clock;
use portcullis_session::{EndConfirmation, LastUse, SessionEnd};

use super::queue::{Queue, Waiting};
use crate::{
    compaction::{needed_ends, needed_uses},
    directory::StateDirectory,
    log_file::LogFile,
    retention::Retention,
};

/// The thread that writes.
pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    pub(super) directory: StateDirectory,
    pub(super) retention: Retention,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ends_file: LogFile,
    pub(super) uses_file: LogFile,
    /// Whether the last write failed. Only the first failure is logged.
    pub(super) is_failing: bool,
}

impl Writer {
    /// Writes what waits, until the queue is closed and empty.
    pub(super) fn run(mut self) {
        loop {
            let Waiting {
                ends,
                uses,
                flushes,
                is_closed,
            } = self.queue.lock().take();
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

    /// Writes what waited. If this fails, the tickets of the ends fail because their confirmations
    /// are dropped.
    pub(super) fn write(&mut self, ends: Vec<(SessionEnd, EndConfirmation)>, uses: &[LastUse]) {
        let mut result = Ok(());
        if !ends.is_empty() {
            result = self
                .ends_file
                .append(ends.iter().map(|(end, _)| end))
                .and_then(|()| self.ends_file.sync());
            if result.is_ok() {
                ends.into_iter()
                    .for_each(|(_, confirmation)| confirmation.confirm());
            }
        }
        if !uses.is_empty() {
            // Not synced: after a power failure, an earlier use counts.
            result = result.and(self.uses_file.append(uses));
        }
        self.report(&result);
    }

    /// Logs that writing fails, or works again.
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

    /// Rewrites the files that have grown to twice the size of what they need.
    fn compact(&mut self) {
        let now = self.clock.now();
        let oldest_end = self.retention.oldest_end(now);
        let oldest_use = self.retention.oldest_use(now);
        let ends = self
            .ends_file
            .compact(&self.directory, |ends| needed_ends(ends, oldest_end));
        let uses = self
            .uses_file
            .compact(&self.directory, |uses| needed_uses(uses, oldest_use));
        for error in [ends, uses].into_iter().filter_map(Result::err) {
            tracing::warn!(error = %error, "a file of the state directory cannot be rewritten and grows");
        }
    }
}
