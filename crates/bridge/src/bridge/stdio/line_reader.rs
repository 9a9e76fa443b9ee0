//! [`LineReader`]: reads lines of bounded length.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{self, AsyncRead, AsyncReadExt as _};

use super::oversized_line::{OversizedLine, OversizedMessage};

/// Reads the lines of a stream, each up to a maximum length.
pub(crate) struct LineReader<R> {
    input: R,
    buffer: BytesMut,
    /// The length of the buffer's prefix without a line break.
    searched: usize,
    max: usize,
    /// The state of the current line, if it is too long to hold.
    oversized: Option<OversizedLine>,
    ended: bool,
}

/// A line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its line break, not empty.
    Text(Bytes),
    /// A line that is longer than the limit. Its text is discarded.
    TooLong(OversizedMessage),
}

/// The number of bytes to read at once.
const PIECE: usize = 16 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, max, oversized: None, ended: false }
    }

    /// Reads the next line that is not blank. None at the end. The last line needs no line break. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            self.buffer.reserve(PIECE);
            self.ended = self.input.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// Empties the buffer, and frees a large one.
    fn release(&mut self) {
        if self.buffer.capacity() > 4 * PIECE {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
    }

    /// Takes a line from the buffer.
    fn take(&mut self) -> Option<Line> {
        loop {
            let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
            let is_partial = !self.buffer.is_empty() || self.oversized.is_some();
            let Some(end) = end.or((self.ended && is_partial).then_some(self.buffer.len())) else {
                self.searched = self.buffer.len();
                if self.oversized.is_some() || self.searched > self.max {
                    self.oversized.get_or_insert_default().push(&self.buffer);
                    self.searched = 0;
                    self.release();
                }
                return None;
            };
            let line = self.buffer.split_to(end).freeze();
            self.buffer.advance(usize::from(!self.buffer.is_empty()));
            self.searched = 0;
            if self.oversized.is_none() && trimmed(&line).len() > self.max {
                self.oversized = Some(OversizedLine::default());
            }
            if let Some(mut oversized) = self.oversized.take() {
                oversized.push(&line);
                return Some(Line::TooLong(oversized.finish()));
            }
            let line = line.slice_ref(trimmed(&line));
            if !line.is_empty() {
                return Some(Line::Text(line));
            }
        }
    }
}

fn trimmed(line: &Bytes) -> &[u8] {
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt as _};

    use super::*;

    async fn lines(input: &[u8], max: usize) -> Vec<Line> {
        let mut lines = LineReader::new(input, max);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    fn text(line: &'static str) -> Line {
        Line::Text(Bytes::from_static(line.as_bytes()))
    }

    #[tokio::test]
    async fn breaks_of_both_kinds_end_lines_and_blank_ones_are_passed_over() {
        assert_eq!(lines(b"a\r\n\n  \nb \nc", 10).await, [text("a"), text("b"), text("c")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_only_itself() {
        let too_long = || Line::TooLong(OversizedMessage::Other);
        assert_eq!(lines(b"12345678901\nb\n", 10).await, [too_long(), text("b")]);
        assert_eq!(lines(b"1234567890\nb\n", 10).await, [text("1234567890"), text("b")]);
        let long = [vec![b'x'; 5 * PIECE], b"\nb\n".to_vec(), vec![b'y'; 3 * PIECE]].concat();
        assert_eq!(lines(&long, 10).await, [too_long(), text("b"), too_long()]);
    }

    /// A line of the greatest length may come in pieces, and a longer one is not held up to its end.
    #[tokio::test(start_paused = true)]
    async fn the_limit_holds_before_the_end_of_a_line() {
        let mut whole = LineReader::new(AsyncReadExt::chain(&b"1234567890"[..], &b"\nb\n"[..]), 10);
        assert_eq!(whole.next().await.unwrap(), Some(text("1234567890")));

        let (mut near, far) = tokio::io::duplex(64 * PIECE);
        near.write_all(&vec![b'x'; 50 * PIECE]).await.unwrap();
        let mut endless = LineReader::new(far, 10);
        let read = tokio::time::timeout(std::time::Duration::from_secs(1), endless.next()).await;
        assert!(read.is_err() && endless.buffer.capacity() <= 5 * PIECE, "{}", endless.buffer.capacity());
        near.write_all(b"\nb\n").await.unwrap();
        assert_eq!(endless.next().await.unwrap(), Some(Line::TooLong(OversizedMessage::Other)));
        assert_eq!(endless.next().await.unwrap(), Some(text("b")));
    }

    /// The identifier of a request may stand behind what makes it too large.
    #[tokio::test]
    async fn the_identifier_of_a_long_line_is_known() {
        let params = "x".repeat(5 * PIECE);
        let request = format!("{{\"method\":\"m\",\"params\":{{\"a\":\"{params}\"}},\"id\":7}}");
        let id = crate::bridge::message::RequestId::parse(b"7").unwrap();
        let expected = Line::TooLong(OversizedMessage::Request(id));
        for max in [10, request.len() - 1] {
            let read = lines(format!("{request}\n{request}").as_bytes(), max).await;
            assert_eq!(read, [expected.clone(), expected.clone()]);
        }
    }

    proptest! {
        /// For any input, the buffer exceeds the limit by at most one read.
        #[test]
        fn memory_is_bounded(pieces in proptest::collection::vec((any::<u8>(), 1_usize..3 * PIECE), 1..6)) {
            let input: Vec<u8> = pieces.iter().flat_map(|(byte, times)| vec![*byte; *times]).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut lines = LineReader::new(&input[..], 64);
                while lines.next().await.unwrap().is_some() {
                    assert!(lines.buffer.len() <= 64 + 2 * PIECE);
                }
            });
        }
    }
}
