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
    /// The maximum length of a line without its line feed, in bytes.
    max: usize,
    /// The state of the current line, if it is too long to hold.
    oversized: Option<OversizedLine>,
    /// Whether the end of the input was read.
    has_ended: bool,
}

/// A line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without the white space around it, not empty.
    Text(Bytes),
    /// A line that is longer than the limit. Its text is discarded.
    TooLong(OversizedMessage),
}

/// The number of bytes to read at once.
const READ_SIZE: usize = 16 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads the lines of `input`, each up to `max` bytes without its line feed, but with the white
    /// space around its text.
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self {
            input,
            buffer: BytesMut::new(),
            searched: 0,
            max,
            oversized: None,
            has_ended: false,
        }
    }

    /// Reads the next line that is not blank. Returns `None` at the end. The last line needs no
    /// line break. Cancel safe. Fails when reading the stream fails.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.buffer.reserve(READ_SIZE);
            self.has_ended = self.input.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// Takes the next line that is not blank from the buffer. Returns `None` if the buffer has no
    /// complete line.
    fn take_line(&mut self) -> Option<Line> {
        loop {
            let Some(end) = self.line_end() else {
                self.discard_if_too_long();
                return None;
            };
            let line = self.buffer.split_to(end).freeze();
            // The line break, which the last line can lack.
            self.buffer.advance(usize::from(!self.buffer.is_empty()));
            self.searched = 0;
            let text = line.slice_ref(line.trim_ascii());
            if self.oversized.is_some() || line.len() > self.max {
                let mut oversized = self.oversized.take().unwrap_or_default();
                oversized.push(&line);
                return Some(Line::TooLong(oversized.finish()));
            }
            if !text.is_empty() {
                return Some(Line::Text(text));
            }
        }
    }

    /// Returns where the current line ends: at the next line break, or at the end of the input.
    fn line_end(&mut self) -> Option<usize> {
        if let Some(at) = memchr(b'\n', &self.buffer[self.searched..]) {
            return Some(self.searched + at);
        }
        self.searched = self.buffer.len();
        let has_line = !self.buffer.is_empty() || self.oversized.is_some();
        (self.has_ended && has_line).then_some(self.buffer.len())
    }

    /// Discards the beginning of a line that already is too long, after its identifier has been
    /// searched for.
    fn discard_if_too_long(&mut self) {
        if self.oversized.is_none() && self.buffer.len() <= self.max {
            return;
        }
        self.oversized.get_or_insert_default().push(&self.buffer);
        self.searched = 0;
        if self.buffer.capacity() > 4 * READ_SIZE {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
    }
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
    async fn blank_lines_and_carriage_returns_are_removed() {
        assert_eq!(
            lines(b"a\r\n\n  \nb \nc", 10).await,
            [text("a"), text("b"), text("c")]
        );
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn the_lines_after_a_line_that_is_too_long_are_read() {
        let too_long = || Line::TooLong(OversizedMessage::Other);
        assert_eq!(
            lines(b"12345678901\nb\n", 10).await,
            [too_long(), text("b")]
        );
        assert_eq!(
            lines(b"1234567890\nb\n", 10).await,
            [text("1234567890"), text("b")]
        );
        let long = [
            vec![b'x'; 5 * READ_SIZE],
            b"\nb\n".to_vec(),
            vec![b'y'; 3 * READ_SIZE],
        ]
        .concat();
        assert_eq!(lines(&long, 10).await, [too_long(), text("b"), too_long()]);
    }

    /// A line of the maximum length can arrive in parts. A longer one is discarded before its end
    /// arrives.
    #[tokio::test(start_paused = true)]
    async fn the_limit_holds_before_the_end_of_a_line() {
        let mut whole = LineReader::new(AsyncReadExt::chain(&b"1234567890"[..], &b"\nb\n"[..]), 10);
        assert_eq!(whole.next().await.unwrap(), Some(text("1234567890")));
        for parts in [
            [&b"1234567890\r\n"[..], b""],
            [b"1234567890\r", b"\n"],
            [b"1234567890", b"\r\n"],
        ] {
            let mut longer = LineReader::new(AsyncReadExt::chain(parts[0], parts[1]), 10);
            let too_long = Line::TooLong(OversizedMessage::Other);
            assert_eq!(longer.next().await.unwrap(), Some(too_long), "{parts:?}");
        }

        let (mut near, far) = tokio::io::duplex(64 * READ_SIZE);
        near.write_all(&vec![b'x'; 50 * READ_SIZE]).await.unwrap();
        let mut endless = LineReader::new(far, 10);
        let read = tokio::time::timeout(std::time::Duration::from_secs(1), endless.next()).await;
        assert!(read.is_err(), "{}", endless.buffer.capacity());
        assert!(
            endless.buffer.capacity() <= 5 * READ_SIZE,
            "{}",
            endless.buffer.capacity()
        );
        near.write_all(b"\nb\n").await.unwrap();
        assert_eq!(
            endless.next().await.unwrap(),
            Some(Line::TooLong(OversizedMessage::Other))
        );
        assert_eq!(endless.next().await.unwrap(), Some(text("b")));
    }

    /// The identifier of a request that is too long is found, also at its end.
    #[tokio::test]
    async fn the_identifier_of_a_long_line_is_found() {
        let params = "x".repeat(5 * READ_SIZE);
        let request = format!("{{\"method\":\"m\",\"params\":{{\"a\":\"{params}\"}},\"id\":7}}");
        let id = crate::message::RequestId::parse(b"7").unwrap();
        let expected = Line::TooLong(OversizedMessage::Request(id));
        for max in [10, request.len() - 1] {
            let read = lines(format!("{request}\n{request}").as_bytes(), max).await;
            assert_eq!(read, [expected.clone(), expected.clone()]);
        }
    }

    proptest! {
        /// For any input, the buffer exceeds the limit by at most one read.
        #[test]
        fn memory_is_bounded(pieces in proptest::collection::vec((any::<u8>(), 1_usize..3 * READ_SIZE), 1..6)) {
            let input: Vec<u8> = pieces.iter().flat_map(|(byte, times)| vec![*byte; *times]).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut lines = LineReader::new(&input[..], 64);
                while lines.next().await.unwrap().is_some() {
                    assert!(lines.buffer.len() <= 64 + 2 * READ_SIZE);
                }
            });
        }
    }
}
