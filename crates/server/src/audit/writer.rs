//! The thread that writes the trail.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use portcullis_metadata::UnixTime;

use super::{Shared, queue::Batch, record, sink::Sink, usage::Usage};

/// How often waiting records are written, and a sink that takes none is tried again.
const PERIOD: Duration = Duration::from_millis(100);
/// Bytes that an empty buffer keeps.
const KEPT: usize = 1 << 20;

/// Writes what waits.
pub(super) struct Writer<S> {
    shared: Arc<Shared>,
    sink: S,
    /// What is being written, and how far it is.
    batch: Batch,
    at: usize,
    /// The slot that is looked at next.
    slot: usize,
    usage_interval: Duration,
    usage_from: UnixTime,
    usage_due: Duration,
    /// The sink took nothing when it was last tried.
    in_trouble: bool,
    has_stopped: bool,
}

/// What a look at the queue and the sink came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is nothing to write now, or nobody takes it.
    Pause,
    /// Everything is written, and nothing comes any more.
    End,
}

impl<S: Sink> Writer<S> {
    pub(super) fn new(shared: Arc<Shared>, sink: S, usage_interval: Duration) -> Self {
        let (usage_from, now) = (shared.clock.now(), shared.clock.monotonic());
        let mut batch = Batch::default();
        record::started(&mut batch.lines, usage_from);
        Self {
            shared,
            sink,
            batch,
            at: 0,
            slot: 0,
            usage_interval,
            usage_from,
            usage_due: now + usage_interval,
            in_trouble: false,
            has_stopped: false,
        }
    }

    /// Writes until nothing comes any more and everything is written.
    pub(super) fn run(mut self) {
        while self.turn() == Turn::Pause {
            thread::park_timeout(PERIOD);
        }
    }

    /// Writes what waits, as far as the sink takes it.
    pub(super) fn turn(&mut self) -> Turn {
        // First of all: what is handed in after this look is not waited for.
        let finishing = self.shared.finishing.load(Ordering::Acquire);
        if self.shared.reopen.swap(false, Ordering::AcqRel) {
            self.reopen();
        }
        loop {
            if self.write().is_err() {
                return Turn::Pause;
            }
            if !self.take_next(finishing) {
                return if self.has_stopped { Turn::End } else { Turn::Pause };
            }
        }
    }

    /// Takes the next slot's records in hand; behind the last slot's the usage, and the end. Nothing is left of those before.
    fn take_next(&mut self, finishing: bool) -> bool {
        if self.has_stopped {
            return false;
        }
        while self.shared.queue.swap(self.slot, &mut self.batch).is_some() {
            self.slot += 1;
            if self.batch.lost > 0 {
                self.tell_of_lost();
            }
            if !self.batch.lines.is_empty() {
                self.shared.in_hand.store(self.batch.records, Ordering::Release);
                return true;
            }
        }
        self.slot = 0;
        let usage_is_due = self.usage_interval > Duration::ZERO && self.shared.clock.monotonic() >= self.usage_due;
        if finishing || usage_is_due {
            self.tell_usage();
        }
        if finishing {
            let (written, lost) =
                (self.shared.written.load(Ordering::Acquire), self.shared.lost.load(Ordering::Acquire));
            record::stopped(&mut self.batch.lines, self.shared.clock.now(), written, lost);
            self.has_stopped = true;
        }
        !self.batch.lines.is_empty()
    }

    fn tell_of_lost(&mut self) {
        let lost = std::mem::take(&mut self.batch.lost);
        record::lost(&mut self.batch.lines, self.shared.clock.now(), lost);
        self.shared.lost.fetch_add(lost, Ordering::AcqRel);
        tracing::warn!(audit.lost = lost, "audit records were lost: the sink was too slow, and the queue full");
    }

    fn tell_usage(&mut self) {
        let now = self.shared.clock.now();
        let mut usage = Usage::new(self.shared.queue.usage_rows());
        self.shared.queue.collect_usage(&mut usage);
        for (key, counts) in usage.rows() {
            record::usage(&mut self.batch.lines, self.usage_from, now, key, counts);
        }
        self.usage_from = now;
        self.usage_due = self.shared.clock.monotonic() + self.usage_interval;
    }

    /// Writes what is in hand.
    fn write(&mut self) -> Result<(), ()> {
        while self.at < self.batch.lines.len() {
            match self.sink.write(&self.batch.lines[self.at..]) {
                Ok(0) => return self.trouble(&io::ErrorKind::WriteZero.into()),
                Ok(written) => self.at += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A full pipe: its reader is slow, and what that costs is told when records are lost.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(()),
                Err(error) => return self.trouble(&error),
            }
        }
        if std::mem::take(&mut self.in_trouble) {
            tracing::info!("audit records are written again");
        }
        self.shared.written.fetch_add(self.batch.records, Ordering::AcqRel);
        self.shared.in_hand.store(0, Ordering::Release);
        self.at = 0;
        self.batch.records = 0;
        self.batch.lines.clear();
        self.batch.lines.shrink_to(KEPT);
        Ok(())
    }

    fn trouble(&mut self, error: &io::Error) -> Result<(), ()> {
        if !std::mem::replace(&mut self.in_trouble, true) {
            tracing::error!(error = %error, "audit records cannot be written; they wait, as far as the queue has room");
        }
        Err(())
    }

    /// The new file begins with a whole line, even where the old one ends within it.
    fn reopen(&mut self) {
        match self.sink.reopen() {
            Ok(()) => {
                let written = &self.batch.lines[..self.at];
                self.at = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
                tracing::info!("the audit trail was opened anew");
            }
            Err(error) => {
                tracing::error!(error = %error, "the audit trail cannot be opened anew and goes on where it was");
            }
        }
    }
}
