use bytes::{Buf as _, Bytes, BytesMut};

use crate::ProtocolError;

/// The maximum length of a chunk-size line with its extensions, in bytes.
const MAX_SIZE_LINE: usize = 4 * 1024;
/// The maximum length of the trailer section, in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// An incremental decoder of the chunked transfer coding (RFC 9112 section 7.1). It discards chunk
/// extensions and trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkedDecoder {
    /// Expects a chunk-size line.
    Size,
    /// Expects this many more bytes of chunk data.
    Data(u64),
    /// Expects the CRLF after chunk data.
    DataEnd,
    /// Expects a line of the trailer section, of which this many bytes were read.
    Trailers(usize),
    /// The body is complete.
    Complete,
}

impl ChunkedDecoder {
    /// Takes the next data from `buffer`. Returns `None` if `buffer` holds no further data or the
    /// body is complete.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, ProtocolError> {
        self.skip_framing(buffer)?;
        let Self::Data(size) = *self else {
            return Ok(None);
        };
        if buffer.is_empty() {
            return Ok(None);
        }
        let data = buffer
            .split_to(
                usize::try_from(size)
                    .unwrap_or(usize::MAX)
                    .min(buffer.len()),
            )
            .freeze();
        *self = match size - data.len() as u64 {
            0 => Self::DataEnd,
            remaining => Self::Data(remaining),
        };
        // Detects the end of the body together with its last data. An error is not lost: the next
        // call finds it again.
        let _ = self.skip_framing(buffer);
        Ok(Some(data))
    }

    /// Removes everything up to the next chunk data from `buffer`. On an error, the invalid line
    /// stays in `buffer`.
    fn skip_framing(&mut self, buffer: &mut BytesMut) -> Result<(), ProtocolError> {
        loop {
            let (next, length) = match *self {
                Self::Data(_) | Self::Complete => return Ok(()),
                Self::DataEnd => match &buffer[..] {
                    [b'\r', b'\n', ..] => (Self::Size, 2),
                    [] | [b'\r'] => return Ok(()),
                    _ => return Err(ProtocolError::Chunk),
                },
                Self::Size => match first_line(buffer, MAX_SIZE_LINE)? {
                    None => return Ok(()),
                    Some(line) => match parse_size(line)? {
                        0 => (Self::Trailers(0), line.len() + 2),
                        size => (Self::Data(size), line.len() + 2),
                    },
                },
                Self::Trailers(read) => match first_line(buffer, MAX_TRAILERS - read)? {
                    None => return Ok(()),
                    Some([]) => (Self::Complete, 2),
                    Some(line) => (
                        Self::Trailers((read + line.len() + 2).min(MAX_TRAILERS)),
                        line.len() + 2,
                    ),
                },
            };
            buffer.advance(length);
            *self = next;
        }
    }
}

/// The first line without its CRLF, or `None` if it is incomplete. A bare LF is an error, because
/// parsers disagree on whether it ends a line.
fn first_line(buffer: &[u8], max: usize) -> Result<Option<&[u8]>, ProtocolError> {
    match memchr::memchr(b'\n', buffer) {
        Some(end) if end <= max => buffer[..end]
            .strip_suffix(b"\r")
            .ok_or(ProtocolError::Chunk)
            .map(Some),
        None if buffer.len() <= max => Ok(None),
        _ => Err(ProtocolError::Chunk),
    }
}

/// Parses a chunk-size line. Ignores chunk extensions.
fn parse_size(line: &[u8]) -> Result<u64, ProtocolError> {
    let digits = line
        .split(|&b| b == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    // `from_str_radix` accepts a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(ProtocolError::Chunk);
    }
    let size = str::from_utf8(digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    size.ok_or(ProtocolError::Chunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes `text`, received in pieces of `piece` bytes. Returns the data, the bytes after the
    /// body, and whether the body is complete.
    fn decode(text: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>, bool), ProtocolError> {
        let mut decoder = ChunkedDecoder::Size;
        let mut buffer = BytesMut::new();
        let mut data = Vec::new();
        for bytes in text.chunks(piece) {
            buffer.extend_from_slice(bytes);
            while let Some(taken) = decoder.decode(&mut buffer)? {
                data.extend_from_slice(&taken);
            }
        }
        Ok((data, buffer.to_vec(), decoder == ChunkedDecoder::Complete))
    }

    fn assert_rejected(text: &str) {
        for piece in [1, text.len()] {
            assert_eq!(
                decode(text.as_bytes(), piece),
                Err(ProtocolError::Chunk),
                "{text:?}"
            );
        }
    }

    /// L1: the decoder accepts sizes, extensions and trailers, split at any byte.
    #[test]
    fn bodies_can_be_split_anywhere() {
        let text = b"4\r\nWiki\r\n00a;name=\"v\"\r\n0123456789\r\nB \t;x\r\nhello\r\nyou!\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\nHTTP";
        for piece in 1..=text.len() {
            let (data, rest, over) = decode(text, piece).unwrap();
            assert_eq!(
                String::from_utf8(data).unwrap(),
                "Wiki0123456789hello\r\nyou!"
            );
            assert_eq!(rest, b"HTTP".to_vec(), "{piece}");
            assert!(over, "{piece}");
        }
    }

    /// L1: the decoder detects the end of the body together with the last data.
    #[test]
    fn the_end_is_detected_with_the_last_data() {
        let mut decoder = ChunkedDecoder::Size;
        assert_eq!(
            decoder
                .decode(&mut BytesMut::from("2\r\n{}\r\n0\r\n\r\n"))
                .unwrap()
                .unwrap(),
            "{}"
        );
        assert_eq!(decoder, ChunkedDecoder::Complete);
    }

    /// L1: the decoder rejects framing on which parsers disagree.
    #[test]
    fn ambiguous_framing_is_rejected() {
        for text in [
            "\r\n",
            "g\r\n",
            "+4\r\nWiki\r\n",
            "-1\r\n",
            "0x4\r\nWiki\r\n",
            "4 4\r\n",
            " 4\r\nWiki\r\n",
            ";x\r\n",
            "4\nWiki\r\n",
            "4\r\nWiki\n",
            "4\r\nWikis\r\n",
            "4\r\nWiki0\r\n\r\n",
            "0\r\n\n",
            "0\r\nx: 1\n\r\n",
            "10000000000000000\r\n",
        ] {
            assert_rejected(text);
        }
        assert_eq!(
            decode(b"ffffffffffffffff\r\nx", 1).unwrap(),
            (b"x".to_vec(), Vec::new(), false)
        );
    }

    /// L1: chunk-size lines and the trailer section have a maximum length.
    #[test]
    fn lines_are_bounded() {
        assert_rejected(&format!("1;{}\r\nx\r\n", "x".repeat(MAX_SIZE_LINE)));
        assert_rejected(&format!("1;{}", "x".repeat(MAX_SIZE_LINE)));
        assert_rejected(&format!("0\r\n{}", "x: 1\r\n".repeat(MAX_TRAILERS / 6 + 1)));
        let trailers = format!("0\r\n{}\r\n", "x: 1\r\n".repeat(MAX_TRAILERS / 6 - 1));
        assert!(decode(trailers.as_bytes(), 7).unwrap().2);
    }

    proptest! {
        /// L1: the result does not depend on how the bytes are split, and no input panics.
        #[test]
        fn splitting_makes_no_difference(text in "([0-3a;\r\n ]|\r\n|1\r\nx\r\n|0\r\n\r\n){0,40}", piece in 1_usize..8) {
            prop_assert_eq!(decode(text.as_bytes(), piece), decode(text.as_bytes(), text.len().max(1)));
        }
    }
}
