use memchr::memchr;

use crate::chain::{Chain, Head};

/// The size in bytes after which no further record is added to a chunk.
const FULL: u64 = 64 << 10;

/// Records with their place in the chain, of which a part is already written.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    /// The number of bytes that are written.
    written: usize,
    ends: Vec<RecordEnd>,
    /// The position before the first record.
    start: Position,
}

/// Where a record of a chunk ends.
struct RecordEnd {
    /// The number of bytes up to it in the chunk.
    in_chunk: usize,
    position: Position,
}

/// The position between two records.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// The number of bytes of the records in the batch.
    pub(super) in_batch: usize,
    pub(super) head: Head,
}

/// How far a chunk is written.
pub(super) struct Written {
    /// The position after the last record that is completely written.
    pub(super) position: Position,
    /// The number of bytes of the next record that are written.
    pub(super) bytes_of_next: usize,
}

impl Chunk {
    /// Replaces the content with the records of a batch from a position on, until the chunk is full
    /// or has `max` bytes. The previous content must be written.
    pub(super) fn fill(&mut self, chain: &mut Chain, batch: &[u8], from: usize, max: u64) {
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            ends: std::mem::take(&mut self.ends),
            written: 0,
            start: Position {
                in_batch: from,
                head: chain.head(),
            },
        };
        self.bytes.clear();
        self.ends.clear();
        let mut in_batch = from;
        let mut rest = batch.get(from..).unwrap_or_default();
        while !rest.is_empty() {
            let length = memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
            let record = rest.split_off(..length).unwrap_or_default();
            chain.append(record, &mut self.bytes);
            in_batch += record.len();
            let position = Position {
                in_batch,
                head: chain.head(),
            };
            self.ends.push(RecordEnd {
                in_chunk: self.bytes.len(),
                position,
            });
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

    /// Returns how far the chunk is written.
    pub(super) fn written(&self) -> Written {
        let complete = self
            .ends
            .partition_point(|end| end.in_chunk <= self.written);
        match complete.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(end) => Written {
                position: end.position,
                bytes_of_next: self.written - end.in_chunk,
            },
            None => Written {
                position: self.start,
                bytes_of_next: self.written,
            },
        }
    }

    /// Drops what is not written, and continues after `position`.
    pub(super) fn restart(&mut self, position: Position) {
        self.bytes.clear();
        self.ends.clear();
        (self.written, self.start) = (0, position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of three records.
    const BATCH: &[u8] = b"{\"a\":1}\n{\"b\":22}\n{\"c\":333}\n";

    /// Writes this many bytes of the batch. Returns what is written: the complete records in bytes,
    /// and bytes of the next.
    fn written_after(bytes: usize) -> (usize, usize) {
        let mut chain = Chain::new(None, Head::default());
        let mut chunk = Chunk::default();
        chunk.fill(&mut chain, BATCH, 0, u64::MAX);
        chunk.advance(bytes);
        assert_eq!(chunk.unwritten(), &BATCH[bytes..]);
        let Written {
            position,
            bytes_of_next,
        } = chunk.written();
        (position.in_batch, bytes_of_next)
    }

    #[test]
    fn only_complete_records_count_as_written() {
        for (bytes, expected) in [
            (0, (0, 0)),
            (5, (0, 5)),
            (8, (8, 0)),
            (9, (8, 1)),
            (17, (17, 0)),
            (27, (27, 0)),
        ] {
            assert_eq!(written_after(bytes), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn a_chunk_ends_after_the_record_that_fills_it() {
        let mut chain = Chain::new(None, Head::default());
        let mut chunk = Chunk::default();
        chunk.fill(&mut chain, BATCH, 8, 1);
        assert_eq!(chunk.unwritten(), &BATCH[8..17]);
        chunk.restart(Position {
            in_batch: 17,
            head: Head::default(),
        });
        assert!(chunk.unwritten().is_empty());
        assert_eq!(chunk.written().position.in_batch, 17);
    }
}
