//! [`TraceParent`]: the header `traceparent` of W3C Trace Context.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The trace context in a `traceparent` header: that of a client, or of this server for its
/// upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceParent {
    /// The identifier of the trace, which is not zero.
    pub trace_id: [u8; 16],
    /// The identifier of the sender's span, which is not zero.
    pub parent_id: [u8; 8],
    /// Whether the sender's span is recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// The header.
    pub const HEADER: HeaderName = HeaderName::from_static("traceparent");

    /// Returns the trace context if the headers contain exactly one `traceparent`, and it is
    /// well-formed.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(Self::HEADER).iter();
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        Self::parse(parent.as_bytes())
    }

    /// Returns the header value, in version 00.
    pub(super) fn to_header_value(self) -> Option<HeaderValue> {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hexadecimal(&mut text[3..35], &self.trace_id);
        write_hexadecimal(&mut text[36..52], &self.parent_id);
        write_hexadecimal(&mut text[53..], &[u8::from(self.is_sampled)]);
        HeaderValue::from_bytes(&text).ok()
    }

    /// Parses `version "-" trace-id "-" parent-id "-" trace-flags`, in lower-case hexadecimal, no
    /// identifier all zeros. Versions after 00 may append further fields; version ff is invalid.
    fn parse(value: &[u8]) -> Option<Self> {
        let (fields, rest) = value.split_first_chunk::<55>()?;
        let hyphens = [fields[2], fields[35], fields[52]] == *b"---";
        let [version] = parse_hexadecimal(&fields[..2])?;
        let [flags] = parse_hexadecimal(&fields[53..])?;
        let trace_id = parse_hexadecimal(&fields[3..35])?;
        let parent_id = parse_hexadecimal(&fields[36..52])?;
        let rest_fits = rest.is_empty() || (version != 0 && rest.starts_with(b"-"));
        let is_valid =
            hyphens && rest_fits && version != 0xff && trace_id != [0; 16] && parent_id != [0; 8];
        is_valid.then_some(Self {
            trace_id,
            parent_id,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// Writes bytes in lower-case hexadecimal.
fn write_hexadecimal(text: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 0xf)],
        ]);
    }
}

/// Decodes lower-case hexadecimal of exactly `N` bytes. Returns `None` for other characters.
fn parse_hexadecimal<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

/// Returns the value of a lower-case hexadecimal digit.
fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn valid(parents: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append(TraceParent::HEADER, HeaderValue::from_str(parent).unwrap());
        }
        TraceParent::of(&headers).is_some()
    }

    /// L2: a header value is written as it is parsed.
    #[test]
    fn values_round_trip() {
        for text in [VALID.to_owned(), VALID.replace("-01", "-00")] {
            assert_eq!(
                TraceParent::parse(text.as_bytes())
                    .unwrap()
                    .to_header_value()
                    .unwrap(),
                text
            );
        }
    }

    /// L2: only a well-formed header is a trace context.
    #[test]
    fn valid_contexts_only() {
        assert!(valid(&[VALID]));
        let parsed = TraceParent::parse(VALID.as_bytes()).unwrap();
        assert_eq!(parsed.trace_id[0], 0x4b);
        assert_eq!(parsed.parent_id[7], 0xb7);
        assert!(parsed.is_sampled);
        assert!(valid(&[&VALID.replacen("00", "cc", 1)]));
        assert!(valid(&[&format!(
            "{}-what-will-be",
            VALID.replacen("00", "cc", 1)
        )]));

        let invalid = [
            String::new(),
            VALID.to_uppercase(),
            VALID.replacen("00", "ff", 1),
            VALID[..54].to_owned(),
            format!("{VALID}-more"),
            format!("{}x", VALID.replacen("00", "cc", 1)),
            VALID.replace('-', "_"),
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            VALID.replace("01", "0g"),
        ];
        for parent in invalid {
            assert!(!valid(&[&parent]), "{parent}");
        }
        assert!(!valid(&[VALID, VALID]));
        assert!(!valid(&[]));
    }
}
