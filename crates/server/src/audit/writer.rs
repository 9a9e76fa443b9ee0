//! The writer thread of the trail.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use portcullis_metadata::UnixTime;

use super::{State, record, sink::Sink};
use crate::log_queue::{Batch, WRITE_PERIOD};

/// Writes queued records to the sink.
pub(super) struct Writer<S> {
    state: Arc<State>,
    sink: S,
    /// The batch that is being written, and the number of bytes already written.
    batch: Batch,
    at: usize,
    /// The next slot to take.
    slot: usize,
    usage_interval: Duration,
    usage_from: UnixTime,
    usage_due: Duration,
    /// Whether the last write failed.
    is_failing: bool,
    has_stopped: bool,
}

/// The result of writing queued records.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is queued, or the sink accepts nothing now.
    Pause,
    /// Everything is written, and no further records follow.
    End,
}

impl<S: Sink> Writer<S> {
    pub(super) fn new(state: Arc<State>, sink: S, usage_interval: Duration) -> Self {
        let (usage_from, now) = (state.clock.now(), state.clock.monotonic());
        let mut batch = Batch::default();
        record::started(&mut batch.lines, usage_from);
        Self {
            state,
            sink,
            batch,
            at: 0,
            slot: 0,
            usage_interval,
            usage_from,
            usage_due: now + usage_interval,
            is_failing: false,
            has_stopped: false,
        }
    }

    /// Writes until the trail ends and everything is written.
    pub(super) fn run(mut self) {
        while self.write_queued() == Progress::Pause {
            thread::park_timeout(WRITE_PERIOD);
        }
    }

    /// Writes queued records as far as the sink accepts them.
    pub(super) fn write_queued(&mut self) -> Progress {
        // Read first: records that are added later are not waited for.
        let finishing = self.state.finishing.load(Ordering::Acquire);
        if self.state.reopen.swap(false, Ordering::AcqRel) {
            self.reopen();
        }
        loop {
            if self.write().is_err() {
                return Progress::Pause;
            }
            if !self.take_next(finishing) {
                return if self.has_stopped { Progress::End } else { Progress::Pause };
            }
        }
    }

    /// Takes the next batch: the slots in order, then usage, then the end. The previous batch must be written.
    fn take_next(&mut self, finishing: bool) -> bool {
        if self.has_stopped {
            return false;
        }
        while self.state.queue.take(self.slot, &mut self.batch).is_some() {
            self.slot += 1;
            if self.batch.lost > 0 {
                self.record_lost();
            }
            if !self.batch.lines.is_empty() {
                self.state.in_hand.store(self.batch.records, Ordering::Release);
                return true;
            }
        }
        self.slot = 0;
        let usage_is_due = self.usage_interval > Duration::ZERO && self.state.clock.monotonic() >= self.usage_due;
        if finishing || usage_is_due {
            self.record_usage();
        }
        if finishing {
            let (written, lost) = (self.state.written.load(Ordering::Acquire), self.state.lost.load(Ordering::Acquire));
            record::stopped(&mut self.batch.lines, self.state.clock.now(), written, lost);
            self.has_stopped = true;
        }
        !self.batch.lines.is_empty()
    }

    fn record_lost(&mut self) {
        let lost = std::mem::take(&mut self.batch.lost);
        record::lost(&mut self.batch.lines, self.state.clock.now(), lost);
        self.state.lost.fetch_add(lost, Ordering::AcqRel);
        tracing::warn!(audit.lost = lost, "audit records were lost: the sink was too slow, and the queue full");
    }

    fn record_usage(&mut self) {
        let now = self.state.clock.now();
        for (key, counts) in self.state.usage.drain().rows() {
            record::usage(&mut self.batch.lines, self.usage_from, now, key, counts);
        }
        self.usage_from = now;
        self.usage_due = self.state.clock.monotonic() + self.usage_interval;
    }

    /// Writes the batch.
    fn write(&mut self) -> Result<(), ()> {
        while self.at < self.batch.lines.len() {
            match self.sink.write(&self.batch.lines[self.at..]) {
                Ok(0) => return self.failed(&io::ErrorKind::WriteZero.into()),
                Ok(written) => self.at += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A full pipe: its reader is slow. Lost records are reported if it stays so.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(()),
                Err(error) => return self.failed(&error),
            }
        }
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("audit records are written again");
        }
        self.state.written.fetch_add(self.batch.records, Ordering::AcqRel);
        self.state.in_hand.store(0, Ordering::Release);
        self.at = 0;
        self.batch.clear();
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) -> Result<(), ()> {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::error!(error = %error, "audit records cannot be written; they wait in the queue until it is full");
        }
        Err(())
    }

    /// Reopens the sink. The new file begins with a whole line, even if the old one ends within it.
    fn reopen(&mut self) {
        match self.sink.reopen() {
            Ok(()) => {
                let written = &self.batch.lines[..self.at];
                self.at = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
                tracing::info!("the audit trail was reopened");
            }
            Err(error) => {
                tracing::error!(error = %error, "the audit trail cannot be reopened; the old file remains in use");
            }
        }
    }
}
