use bytes::{Buf as _, Bytes, BytesMut};

use super::malformed::Malformed;

/// The longest line that tells the size of a chunk, its extensions included, in bytes.
const MAX_SIZE_LINE: usize = 4 * 1024;
/// All trailers together, in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// The chunked transfer coding (RFC 9112 section 7.1), read as it comes. Extensions and trailers are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunked {
    /// A line with the size of the next chunk is to come.
    Size,
    /// So much of a chunk's data is to come.
    Data(u64),
    /// The end of line behind a chunk's data is to come.
    DataEnd,
    /// Trailers are to come, of which there were so many bytes.
    Trailers(usize),
    Over,
}

impl Chunked {
    /// The next data that is there. Nothing when more has to come first, or all was read.
    pub(crate) fn take(&mut self, inbox: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        self.advance(inbox)?;
        let Self::Data(size) = *self else { return Ok(None) };
        if inbox.is_empty() {
            return Ok(None);
        }
        let data = inbox.split_to(usize::try_from(size).unwrap_or(usize::MAX).min(inbox.len())).freeze();
        *self = match size - data.len() as u64 {
            0 => Self::DataEnd,
            rest => Self::Data(rest),
        };
        // Whether this was the last data shows where its end came with it. What is wrong there is found again, after
        // the data was handed on.
        let _ = self.advance(inbox);
        Ok(Some(data))
    }

    /// Reads what stands between data. Takes nothing that it finds wrong.
    fn advance(&mut self, inbox: &mut BytesMut) -> Result<(), Malformed> {
        loop {
            let (next, length) = match *self {
                Self::Data(_) | Self::Over => return Ok(()),
                Self::DataEnd => match &inbox[..] {
                    [b'\r', b'\n', ..] => (Self::Size, 2),
                    [] | [b'\r'] => return Ok(()),
                    _ => return Err(Malformed::Chunk),
                },
                Self::Size => match line(inbox, MAX_SIZE_LINE)? {
                    None => return Ok(()),
                    Some(line) => match size(line)? {
                        0 => (Self::Trailers(0), line.len() + 2),
                        size => (Self::Data(size), line.len() + 2),
                    },
                },
                Self::Trailers(before) => match line(inbox, MAX_TRAILERS - before)? {
                    None => return Ok(()),
                    Some([]) => (Self::Over, 2),
                    Some(line) => (Self::Trailers((before + line.len() + 2).min(MAX_TRAILERS)), line.len() + 2),
                },
            };
            inbox.advance(length);
            *self = next;
        }
    }
}

/// The first line, if it is there whole. Only CRLF ends one: what a single LF means here is what parsers differ in.
fn line(inbox: &[u8], max: usize) -> Result<Option<&[u8]>, Malformed> {
    match memchr::memchr(b'\n', inbox) {
        Some(end) if end <= max => inbox[..end].strip_suffix(b"\r").ok_or(Malformed::Chunk).map(Some),
        None if inbox.len() <= max => Ok(None),
        _ => Err(Malformed::Chunk),
    }
}

/// A size in hexadecimal digits, and whatever extensions stand behind it.
fn size(line: &[u8]) -> Result<u64, Malformed> {
    let size = line.split(|&b| b == b';').next().unwrap_or_default();
    let digits = size.trim_ascii_end();
    // `from_str_radix` would take a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Malformed::Chunk);
    }
    let size = str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    size.ok_or(Malformed::Chunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data of a body that comes in pieces of this size, and what is left behind its end.
    fn read(text: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>, bool), Malformed> {
        let (mut chunked, mut inbox, mut data) = (Chunked::Size, BytesMut::new(), Vec::new());
        for bytes in text.chunks(piece) {
            inbox.extend_from_slice(bytes);
            while let Some(taken) = chunked.take(&mut inbox)? {
                data.extend_from_slice(&taken);
            }
        }
        Ok((data, inbox.to_vec(), chunked == Chunked::Over))
    }

    fn refused(text: &str) {
        for piece in [1, text.len()] {
            assert_eq!(read(text.as_bytes(), piece), Err(Malformed::Chunk), "{text:?}");
        }
    }

    /// L1: sizes, extensions and trailers, however they come.
    #[test]
    fn bodies_come_in_pieces() {
        let text = b"4\r\nWiki\r\n00a;name=\"v\"\r\n0123456789\r\nB \t;x\r\nhello\r\nyou!\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\nHTTP";
        for piece in 1..=text.len() {
            let (data, rest, over) = read(text, piece).unwrap();
            assert_eq!(String::from_utf8(data).unwrap(), "Wiki0123456789hello\r\nyou!");
            assert_eq!((rest, over), (b"HTTP".to_vec(), true), "{piece}");
        }
    }

    /// L1: the end is noticed with the last data, when it came with it.
    #[test]
    fn the_end_is_noticed_with_the_last_data() {
        let mut chunked = Chunked::Size;
        assert_eq!(chunked.take(&mut BytesMut::from("2\r\n{}\r\n0\r\n\r\n")).unwrap().unwrap(), "{}");
        assert_eq!(chunked, Chunked::Over);
    }

    /// L1: what parsers could read in two ways is refused.
    #[test]
    fn what_is_not_framed_well() {
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
            refused(text);
        }
        assert_eq!(read(b"ffffffffffffffff\r\nx", 1).unwrap(), (b"x".to_vec(), Vec::new(), false));
    }

    /// L1: lines beside the data are bounded.
    #[test]
    fn lines_are_bounded() {
        refused(&format!("1;{}\r\nx\r\n", "x".repeat(MAX_SIZE_LINE)));
        refused(&format!("1;{}", "x".repeat(MAX_SIZE_LINE)));
        refused(&format!("0\r\n{}", "x: 1\r\n".repeat(MAX_TRAILERS / 6 + 1)));
        let trailers = format!("0\r\n{}\r\n", "x: 1\r\n".repeat(MAX_TRAILERS / 6 - 1));
        assert!(read(trailers.as_bytes(), 7).unwrap().2);
    }

    proptest! {
        /// L1: whatever comes is read the same in one piece and in many, and never panics.
        #[test]
        fn pieces_make_no_difference(text in "([0-3a;\r\n ]|\r\n|1\r\nx\r\n|0\r\n\r\n){0,40}", piece in 1_usize..8) {
            prop_assert_eq!(read(text.as_bytes(), piece), read(text.as_bytes(), text.len().max(1)));
        }
    }
}
