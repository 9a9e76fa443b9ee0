//! [`LineReader`]: reads lines of bounded length.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{self, AsyncRead, AsyncReadExt as _};

/// LineReader of a stream, each held in memory only up to a limit.
pub(crate) struct LineReader<R> {
    input: R,
    buffer: BytesMut,
    /// How much of the buffer is known to have no line break.
    searched: usize,
    max: usize,
    /// Within a line that is too long, whose rest is thrown away.
    skipping: bool,
    ended: bool,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its break, not empty.
    Text(Bytes),
    /// A line that is longer than the limit; it is gone.
    TooLong,
}

/// How much is read at once.
const PIECE: usize = 16 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, max, skipping: false, ended: false }
    }

    /// The next line that is not blank, or none at the end. A last line needs no break. It may be dropped before it is
    /// ready and called again.
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

    /// A line of what is there already.
    fn take(&mut self) -> Option<Line> {
        loop {
            let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
            let Some(end) = end.or((self.ended && !self.buffer.is_empty()).then_some(self.buffer.len())) else {
                self.searched = self.buffer.len();
                if self.searched > self.max {
                    self.searched = 0;
                    self.buffer.clear();
                    if !std::mem::replace(&mut self.skipping, true) {
                        return Some(Line::TooLong);
                    }
                }
                return None;
            };
            let line = self.buffer.split_to(end).freeze();
            self.buffer.advance(usize::from(!self.buffer.is_empty()));
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = trimmed(line);
            if line.len() > self.max {
                return Some(Line::TooLong);
            }
            if !line.is_empty() {
                return Some(Line::Text(line));
            }
        }
    }
}

fn trimmed(line: Bytes) -> Bytes {
    let text = line.trim_ascii();
    if text.len() == line.len() { line } else { line.slice_ref(text) }
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
        assert_eq!(lines(b"12345678901\nb\n", 10).await, [Line::TooLong, text("b")]);
        assert_eq!(lines(b"1234567890\nb\n", 10).await, [text("1234567890"), text("b")]);
        let long = [vec![b'x'; 5 * PIECE], b"\nb\n".to_vec(), vec![b'y'; 3 * PIECE]].concat();
        assert_eq!(lines(&long, 10).await, [Line::TooLong, text("b"), Line::TooLong]);
    }

    /// A line of the greatest length may come in pieces, and one that is longer is not waited for to its end.
    #[tokio::test(start_paused = true)]
    async fn the_limit_holds_before_the_end_of_a_line() {
        let mut whole = LineReader::new(AsyncReadExt::chain(&b"1234567890"[..], &b"\nb\n"[..]), 10);
        assert_eq!(whole.next().await.unwrap(), Some(text("1234567890")));

        let (mut near, far) = tokio::io::duplex(8 * PIECE);
        near.write_all(&vec![b'x'; 5 * PIECE]).await.unwrap();
        let mut endless = LineReader::new(far, 10);
        let told = tokio::time::timeout(std::time::Duration::from_secs(1), endless.next()).await;
        assert_eq!(told.unwrap().unwrap(), Some(Line::TooLong));
    }

    proptest! {
        /// What is held never outgrows the limit by more than one read, whatever comes.
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
