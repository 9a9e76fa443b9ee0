//! The writer thread of the trail.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use portcullis_metadata::UnixTime;
use portcullis_telemetry::log_queue::{Batch, WRITE_PERIOD};

use crate::{
    chain::{Chain, ChainKey, Head},
    chunk::{Chunk, Position, Written},
    record,
    sink::{Opening, Sink},
    state::State,
};

/// How often the head of the chain is logged.
const HEAD_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The time until a rotation that failed is tried again.
const ROTATION_RETRY: Duration = Duration::from_secs(60);

/// Writes queued records to the sink.
pub(super) struct Writer<S> {
    state: Arc<State>,
    sink: S,
    chain: Chain,
    /// The batch that is being written, and its part that is in the chunk.
    batch: Batch,
    chunk: Chunk,
    /// Whether the current file has records besides those that begin it.
    file_has_records: bool,
    rotation_due: Duration,
    head_due: Duration,
    logged_head: Head,
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
    /// Creates a writer for a sink that was just opened. Without a key, records are not chained.
    pub(super) fn new(
        state: Arc<State>,
        (sink, opening): (S, Opening),
        key: Option<ChainKey>,
        usage_interval: Duration,
    ) -> Self {
        let usage_from = state.clock.now();
        let now = state.clock.monotonic();
        let mut chain = Chain::new(key, Head::default());
        if chain.has_key() {
            chain.rewind(opening.head.unwrap_or_default());
        }
        let mut writer = Self {
            state,
            sink,
            logged_head: chain.head(),
            chain,
            batch: Batch::default(),
            chunk: Chunk::default(),
            file_has_records: opening.has_records,
            rotation_due: now,
            head_due: now + HEAD_INTERVAL,
            slot: 0,
            usage_interval,
            usage_from,
            usage_due: now + usage_interval,
            is_failing: false,
            has_stopped: false,
        };
        writer.begin_file(opening, 0, true);
        writer
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
                self.log_head();
                return if self.has_stopped {
                    Progress::End
                } else {
                    Progress::Pause
                };
            }
        }
    }

    /// Takes the next batch: the slots in order, then equal rejections, usage and the end. The
    /// previous batch must be written. Returns whether there is a next one.
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
                self.state
                    .in_hand
                    .store(self.batch.records, Ordering::Release);
                return true;
            }
        }
        self.slot = 0;
        self.record_rejections(finishing);
        let usage_is_due =
            self.usage_interval > Duration::ZERO && self.state.clock.monotonic() >= self.usage_due;
        if finishing || usage_is_due {
            self.record_usage();
        }
        if finishing {
            let written = self.state.written.load(Ordering::Acquire);
            let lost = self.state.lost.load(Ordering::Acquire);
            record::stopped(&mut self.batch.lines, self.state.clock.now(), written, lost);
            self.has_stopped = true;
        }
        self.file_has_records |= !self.batch.lines.is_empty();
        !self.batch.lines.is_empty()
    }

    fn record_lost(&mut self) {
        let lost = std::mem::take(&mut self.batch.lost);
        record::lost(&mut self.batch.lines, self.state.clock.now(), lost);
        self.state.lost.fetch_add(lost, Ordering::AcqRel);
        tracing::warn!(
            audit.lost = lost,
            "audit records were lost: the sink was too slow, and the queue full"
        );
    }

    fn record_rejections(&mut self, finishing: bool) {
        let rejections = &self.state.rejections;
        let summed = if finishing {
            rejections.take()
        } else {
            rejections.take_due(self.state.clock.monotonic())
        };
        let now = self.state.clock.now();
        for rejections in &summed {
            record::rejections(&mut self.batch.lines, now, rejections);
        }
    }

    fn record_usage(&mut self) {
        let now = self.state.clock.now();
        for (key, counts) in self.state.usage.drain().rows() {
            record::usage(&mut self.batch.lines, self.usage_from, now, key, counts);
        }
        self.usage_from = now;
        self.usage_due = self.state.clock.monotonic() + self.usage_interval;
    }

    /// Writes the batch. Fails when the sink does not accept all of it now; the next call
    /// continues.
    fn write(&mut self) -> Result<(), ()> {
        loop {
            self.write_chunk()?;
            let now = self.state.clock.now();
            if self.file_has_records && self.sink.bytes_until_rotation(now) == 0 {
                self.rotate(now);
            }
            let in_batch = self.chunk.written().position.in_batch;
            if in_batch >= self.batch.lines.len() {
                break;
            }
            // A file that cannot be rotated grows.
            let max = match self.sink.bytes_until_rotation(now) {
                0 => u64::MAX,
                bytes => bytes,
            };
            self.chunk
                .fill(&mut self.chain, &self.batch.lines, in_batch, max);
            self.file_has_records |= self.batch.records > 0;
        }
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("audit records are written again");
        }
        self.state
            .written
            .fetch_add(self.batch.records, Ordering::AcqRel);
        self.state.in_hand.store(0, Ordering::Release);
        self.batch.clear();
        self.chunk.restart(Position {
            in_batch: 0,
            head: self.chain.head(),
        });
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<(), ()> {
        while !self.chunk.unwritten().is_empty() {
            match self.sink.write(self.chunk.unwritten()) {
                Ok(0) => return self.failed(&io::ErrorKind::WriteZero.into()),
                Ok(written) => self.chunk.advance(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A full pipe: its reader is slow. Lost records are reported if it stays so.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(()),
                Err(error) => return self.failed(&error),
            }
        }
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
            Ok(opening) => {
                let Written {
                    position,
                    bytes_of_next,
                } = self.chunk.written();
                self.chain.rewind(position.head);
                self.chunk.restart(position);
                self.begin_file(opening, bytes_of_next as u64, false);
                tracing::info!("the audit trail was reopened");
            }
            Err(error) => {
                tracing::error!(error = %error, "the audit trail cannot be reopened; the old file remains in use");
            }
        }
    }

    /// Rotates the file. The chunk must be written.
    fn rotate(&mut self, now: UnixTime) {
        if self.state.clock.monotonic() < self.rotation_due {
            return;
        }
        match self.sink.rotate(now) {
            Ok(opening) => self.begin_file(opening, 0, false),
            Err(error) => {
                self.rotation_due = self.state.clock.monotonic() + ROTATION_RETRY;
                tracing::error!(error = %error, "the audit file cannot be rotated; it remains in use");
            }
        }
    }

    /// Inserts the records that begin a file, or continue one, before those that are still to be
    /// written. `torn` is the number of bytes of an incomplete line at the end of the file before.
    fn begin_file(&mut self, opening: Opening, torn: u64, is_start: bool) {
        let now = self.state.clock.now();
        let mut records = Vec::new();
        let head = self.chain.head();
        if !opening.has_records && self.chain.has_key() && head != Head::default() {
            record::continued(&mut records, now, head);
        }
        if is_start {
            let begins_new_chain = opening.begins_new_chain;
            record::started(&mut records, now, self.state.version, begins_new_chain);
        }
        let torn = opening.torn.unwrap_or(torn);
        if torn > 0 {
            record::torn(&mut records, now, torn);
        }
        let in_batch = self.chunk.written().position.in_batch;
        self.batch.lines.splice(in_batch..in_batch, records);
        self.file_has_records = opening.has_records;
    }

    /// Logs the head of the chain if it is due and has changed. Everything must be written.
    fn log_head(&mut self) {
        let head = self.chain.head();
        let now = self.state.clock.monotonic();
        if head == self.logged_head || (now < self.head_due && !self.has_stopped) {
            return;
        }
        tracing::info!(audit.head = %head, "the head of the audit trail");
        (self.logged_head, self.head_due) = (head, now + HEAD_INTERVAL);
    }
}
