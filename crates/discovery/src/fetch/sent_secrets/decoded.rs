//! [`Decoded`]: a text whose escapes are decoded, with the position of each byte in the original.

use std::ops::Range;

/// A text without one or more levels of escapes.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins in the original text, and the original's length.
    starts: Vec<usize>,
}

/// A `+` in a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    Itself,
    Space,
}

/// The entities of HTML that escape a character of a URL or of JSON.
const ENTITIES: [(&[u8], u8); 5] = [
    (b"amp;", b'&'),
    (b"lt;", b'<'),
    (b"gt;", b'>'),
    (b"quot;", b'"'),
    (b"apos;", b'\''),
];

impl Decoded {
    /// The original text.
    pub(super) fn of(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            starts: (0..=text.len()).collect(),
        }
    }

    /// Decodes one level: `%2F` of URLs, `\u002f` and `\/` of JSON, `&#x2F;` and `&amp;` of HTML.
    /// What is not an escape is itself.
    pub(super) fn decoded(&self, plus: Plus) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(self.bytes.len() + 1);
        let mut position = 0;
        while let Some((&first, rest)) = self.bytes.get(position..).and_then(<[u8]>::split_first) {
            let escape = match first {
                b'%' => percent(rest),
                b'\\' => json(rest),
                b'&' => html(rest),
                b'+' if plus == Plus::Space => Some((' ', 0)),
                _ => None,
            };
            let start = self.start(position);
            let before = bytes.len();
            match escape {
                // A byte of UTF-8 that is encoded alone is not a character.
                Some((character, length)) if first == b'%' => {
                    bytes.push(u8::try_from(character).unwrap_or_default());
                    position += length;
                }
                Some((character, length)) => {
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    position += length;
                }
                None => bytes.push(first),
            }
            position += 1;
            starts.resize(starts.len() + bytes.len() - before, start);
        }
        starts.push(self.start(self.bytes.len()));
        Self { bytes, starts }
    }

    /// Returns the range of the original text that these bytes represent.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        self.start(range.start)..self.start(range.end)
    }

    fn start(&self, position: usize) -> usize {
        self.starts
            .get(position)
            .or(self.starts.last())
            .copied()
            .unwrap_or_default()
    }
}

/// Two hexadecimal digits after `%`. A byte from 0x80 on is returned as the character with that
/// number.
fn percent(rest: &[u8]) -> Option<(char, usize)> {
    Some((u8::try_from(number(rest.get(..2)?, 16)?).ok()?.into(), 2))
}

/// An escape after `\` (RFC 8259 section 7). One half of a surrogate pair is not decoded.
fn json(rest: &[u8]) -> Option<(char, usize)> {
    match rest.first()? {
        b'u' => Some((char::from_u32(number(rest.get(1..5)?, 16)?)?, 5)),
        b'n' => Some(('\n', 1)),
        b't' => Some(('\t', 1)),
        other @ (b'"' | b'\\' | b'/' | b'\'') => Some(((*other).into(), 1)),
        _ => None,
    }
}

/// A character reference after `&`, with at most 7 digits.
fn html(rest: &[u8]) -> Option<(char, usize)> {
    let Some(digits) = rest.strip_prefix(b"#") else {
        let (name, character) = ENTITIES.iter().find(|(name, _)| rest.starts_with(name))?;
        return Some(((*character).into(), name.len()));
    };
    let (digits, radix, prefix) = match digits.strip_prefix(b"x").or(digits.strip_prefix(b"X")) {
        Some(digits) => (digits, 16, 2),
        None => (digits, 10, 1),
    };
    let length = digits.iter().take(8).position(|byte| *byte == b';')?;
    Some((
        char::from_u32(number(digits.get(..length)?, radix)?)?,
        prefix + length + 1,
    ))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
    u32::from_str_radix(digits, radix).ok()
}
