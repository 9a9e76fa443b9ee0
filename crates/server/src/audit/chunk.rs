//! The chunk of the chain that is being written.

use super::chain::{Chain, Head};

/// The size in bytes after which no further record is added to a chunk.
const FULL: u64 = 64 << 10;

/// Records with their place in the chain, of which a part is already written.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    written: usize,
    ends: Vec<RecordEnd>,
    /// The position before the first record.
    start: Position,
}

/// Where a record of a chunk ends.
struct RecordEnd {
    in_chunk: usize,
    position: Position,
}

/// The position between two records.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// The number of bytes of the records in the batch.
    pub(super) in_batch: usize,
    /// The head of the chain.
    pub(super) head: Head,
}

impl Chunk {
    /// Replaces the content with the records of a batch from a position on, until the chunk is full or has `max` bytes. The
    /// previous content must be written.
    pub(super) fn fill(&mut self, chain: &mut Chain, batch: &[u8], from: usize, max: u64) {
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            ends: std::mem::take(&mut self.ends),
            written: 0,
            start: Position { in_batch: from, head: chain.head() },
        };
        self.bytes.clear();
        self.ends.clear();
        let mut in_batch = from;
        for record in batch.get(from..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            chain.append(record, &mut self.bytes);
            in_batch += record.len();
            let position = Position { in_batch, head: chain.head() };
            self.ends.push(RecordEnd { in_chunk: self.bytes.len(), position });
            if self.bytes.len() as u64 >= max.min(FULL) {
                return;
            }
        }
    }

    /// Returns the bytes that are not yet written.
    pub(super) fn unwritten(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// Counts bytes as written.
    pub(super) fn advance(&mut self, written: usize) {
        self.written += written;
    }

    /// Returns the position after the last record that is completely written, and the number of bytes written of the next one.
    pub(super) fn position(&self) -> (Position, usize) {
        let complete = self.ends.partition_point(|end| end.in_chunk <= self.written);
        match complete.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(end) => (end.position, self.written - end.in_chunk),
            None => (self.start, self.written),
        }
    }

    /// Drops what is not written, and continues after `position`.
    pub(super) fn restart(&mut self, position: Position) {
        self.bytes.clear();
        self.ends.clear();
        (self.written, self.start) = (0, position);
    }
}
