//! [`Writer`]: the thread that changes the database.

use std::{
    iter::once,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use parking_lot::RwLock;
use portcullis_metadata::Clock;
use redb::WriteTransaction;
use tokio::sync::oneshot;

use super::{
    MAX_QUEUED,
    database::{Opened, RecordsFile, guarded},
    transaction::Tables,
};
use crate::records::{Change, Outcome, RecordError};

/// The minimum time between two attempts to open the file again, because each reads all of it.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// A job for the thread.
pub(super) enum Job {
    /// Makes a change.
    Commit {
        change: Change,
        answer: oneshot::Sender<Result<Outcome, RecordError>>,
    },
    /// Removes expired records.
    Sweep {
        answer: oneshot::Sender<Result<(), RecordError>>,
    },
}

/// The thread that changes the database.
pub(super) struct Writer {
    file: RecordsFile,
    opened: Arc<RwLock<Opened>>,
    clock: Arc<dyn Clock>,
    jobs: Receiver<Job>,
    /// When the file can be opened again, by the monotonic clock.
    next_attempt: Duration,
    /// Whether the last changes failed. Only the first failure is logged.
    is_failing: bool,
}

impl Writer {
    pub(super) fn new(
        file: RecordsFile,
        opened: Arc<RwLock<Opened>>,
        clock: Arc<dyn Clock>,
        jobs: Receiver<Job>,
    ) -> Self {
        Self {
            file,
            opened,
            clock,
            jobs,
            next_attempt: Duration::ZERO,
            is_failing: false,
        }
    }

    /// Executes what waits in one transaction, until the store is dropped and nothing waits.
    pub(super) fn run(mut self) {
        while let Ok(first) = self.jobs.recv() {
            let jobs: Vec<_> = once(first)
                .chain(self.jobs.try_iter().take(MAX_QUEUED))
                .collect();
            let result = self.execute(&jobs);
            if let Err(error) = &result {
                self.close(error);
            }
            self.report(result.as_ref().err());
            answer(jobs, result);
        }
        self.close(&RecordError::Closed);
    }

    /// Executes jobs and makes them durable. Returns the outcome of each.
    fn execute(&mut self, jobs: &[Job]) -> Result<Vec<Outcome>, RecordError> {
        let transaction = self.begin()?;
        let now = self.clock.now();
        guarded(self.file.path(), || {
            let mut tables = Tables::new(&transaction);
            let outcomes = jobs
                .iter()
                .map(|job| match job {
                    Job::Commit { change, .. } => tables.apply(change, now),
                    Job::Sweep { .. } => tables.sweep(now).map(|()| Outcome::Committed),
                })
                .collect::<Result<Vec<_>, _>>()?;
            let is_changed = tables.is_changed;
            drop(tables);
            if is_changed {
                transaction.commit()?;
            } else {
                transaction.abort()?;
            }
            Ok(outcomes)
        })
    }

    /// Begins a transaction. A database that is not open, or that a failed read has made unusable,
    /// is opened again.
    fn begin(&mut self) -> Result<WriteTransaction, RecordError> {
        let failure = match &*self.opened.read() {
            Ok(database) => match guarded(self.file.path(), || Ok(database.begin_write()?)) {
                Ok(transaction) => return Ok(transaction),
                Err(error) => error,
            },
            Err(error) => error.clone(),
        };
        let now = self.clock.monotonic();
        if now < self.next_attempt {
            return Err(failure);
        }
        // The file can be opened once only.
        self.close(&failure);
        let opened = self.file.reopen();
        self.next_attempt = now.saturating_add(REOPEN_INTERVAL);
        let transaction = match &opened {
            Ok(database) => guarded(self.file.path(), || Ok(database.begin_write()?)),
            Err(error) => Err(error.clone()),
        };
        *self.opened.write() = opened;
        transaction
    }

    /// Closes the database. Reads fail with the error.
    fn close(&self, error: &RecordError) {
        let closed = std::mem::replace(&mut *self.opened.write(), Err(error.clone()));
        // What cannot be written when it is closed is repaired when it is opened.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(closed)));
    }

    /// Logs that changes fail, or work again.
    fn report(&mut self, error: Option<&RecordError>) {
        match error {
            Some(error) if !self.is_failing => tracing::error!(
                error = %error, reason = error.code(),
                "records cannot be written; no user can sign in until they can"
            ),
            None if self.is_failing => tracing::info!("records are written again"),
            _ => {}
        }
        self.is_failing = error.is_some();
    }
}

/// Answers jobs. A caller that does not wait any more is ignored.
fn answer(jobs: Vec<Job>, result: Result<Vec<Outcome>, RecordError>) {
    match result {
        Ok(outcomes) => {
            for (job, outcome) in jobs.into_iter().zip(outcomes) {
                match job {
                    Job::Commit { answer, .. } => drop(answer.send(Ok(outcome))),
                    Job::Sweep { answer } => drop(answer.send(Ok(()))),
                }
            }
        }
        Err(error) => {
            for job in jobs {
                match job {
                    Job::Commit { answer, .. } => drop(answer.send(Err(error.clone()))),
                    Job::Sweep { answer } => drop(answer.send(Err(error.clone()))),
                }
            }
        }
    }
}
