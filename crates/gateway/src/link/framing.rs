use http::{HeaderValue, StatusCode};

use super::malformed::Malformed;

/// How the body of an answer ends (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
    /// With its connection.
    UntilClose,
}

/// What the headers say about it.
#[derive(Default)]
pub(crate) struct Framed {
    length: Option<u64>,
    chunked: bool,
    /// Whether the length is not written as one plain number.
    is_odd: bool,
}

impl Framed {
    /// Reads a `Content-Length`. A list of the same number is that number, all else is refused (RFC 9110 section 8.6).
    pub(crate) fn content_length(&mut self, value: &HeaderValue) -> Result<(), Malformed> {
        for number in value.as_bytes().split(|&b| b == b',') {
            let digits = number.trim_ascii();
            let length = decimal(digits)?;
            self.is_odd |= self.length.is_some() || (digits.len() > 1 && digits.starts_with(b"0"));
            if self.length.is_some_and(|known| known != length) {
                return Err(Malformed::Length);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// Reads a `Transfer-Encoding`. No coding but this one may come: no request says that it accepts others.
    pub(crate) fn transfer_encoding(&mut self, value: &HeaderValue) -> Result<(), Malformed> {
        if self.chunked || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(Malformed::TransferCoding);
        }
        self.chunked = true;
        Ok(())
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// The length, where it has to be rewritten as one plain number for the client: another reader may not understand
    /// `5, 5` or `005`.
    pub(crate) fn odd_length(&self) -> Option<u64> {
        self.length.filter(|_| self.is_odd)
    }

    /// Whether every reader finds the end of this answer at the same place, so that another answer can follow. Not so:
    /// - a length beside the chunked coding (RFC 9112 section 6.1), or a length that is not one plain number;
    /// - an announced body where none may be: a length other than 0 with 1xx, 204 or 205, or a coding with 1xx, 204, 205,
    ///   304 or the answer to HEAD. An upstream that sends it all the same would have it read as the next answer.
    pub(crate) fn is_unambiguous(&self, status: StatusCode, to_head: bool) -> bool {
        let has_length = self.length.is_some_and(|length| length > 0);
        let is_bodiless = is_bodiless(status) || status == StatusCode::RESET_CONTENT;
        let contradicts = self.chunked && self.length.is_some();
        let announces_none = match status {
            // Both tell what the answer to a GET would announce.
            StatusCode::NOT_MODIFIED => self.chunked,
            _ if to_head => self.chunked,
            _ => is_bodiless && (self.chunked || has_length),
        };
        !contradicts && !self.is_odd && !announces_none
    }

    pub(crate) fn framing(&self, status: StatusCode, to_head: bool) -> Framing {
        match self.length {
            _ if to_head || is_bodiless(status) => Framing::Length(0),
            _ if self.chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
    }
}

/// Whether an answer of this status ends with its head (RFC 9112 section 6.3).
pub(super) fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn decimal(digits: &[u8]) -> Result<u64, Malformed> {
    // `parse` would take a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::Length);
    }
    str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(values: &[&'static str]) -> Result<Option<u64>, Malformed> {
        let mut framed = Framed::default();
        for value in values {
            framed.content_length(&HeaderValue::from_static(value))?;
        }
        Ok(framed.length)
    }

    /// L1: a length is one number, said once or again.
    #[test]
    fn lengths() {
        for (values, expected) in
            [(&["0"][..], 0), (&["007"], 7), (&["5, 5"], 5), (&["5", "5"], 5), (&["18446744073709551615"], u64::MAX)]
        {
            assert_eq!(length(values), Ok(Some(expected)), "{values:?}");
        }
        for values in [
            &["5, 6"][..],
            &["5", "6"],
            &["5,"],
            &[""],
            &["+5"],
            &["-1"],
            &["0x5"],
            &["5 5"],
            &["18446744073709551616"],
        ] {
            assert_eq!(length(values), Err(Malformed::Length), "{values:?}");
        }
    }

    /// L1: chunked, once, and nothing else.
    #[test]
    fn codings() {
        let read = |values: &[&'static str]| {
            let mut framed = Framed::default();
            values.iter().try_for_each(|value| framed.transfer_encoding(&HeaderValue::from_static(value)))
        };
        assert_eq!(read(&["Chunked"]), Ok(()));
        for values in [
            &["gzip, chunked"][..],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["identity"],
            &[""],
            &["xchunked"],
        ] {
            assert_eq!(read(values), Err(Malformed::TransferCoding), "{values:?}");
        }
    }

    /// L10: the length that the client gets is one plain number.
    #[test]
    fn odd_lengths() {
        for (values, expected) in [
            (&["5"][..], None),
            (&["0"], None),
            (&["10"], None),
            (&["5, 5"], Some(5)),
            (&["5", "5"], Some(5)),
            (&["005"], Some(5)),
            (&["00"], Some(0)),
        ] {
            let mut framed = Framed::default();
            values.iter().for_each(|value| framed.content_length(&HeaderValue::from_static(value)).unwrap());
            assert_eq!(framed.odd_length(), expected, "{values:?}");
            assert_eq!(framed.is_unambiguous(StatusCode::OK, false), expected.is_none(), "{values:?}");
        }
    }

    /// L10: an answer without a body that announces one is not trusted, except where the announcement is about another
    /// answer.
    #[test]
    fn announced_bodies_that_cannot_be() {
        let is_trusted = |length, chunked, status: u16, to_head| {
            let framed = Framed { length, chunked, is_odd: false };
            framed.is_unambiguous(StatusCode::from_u16(status).unwrap(), to_head)
        };
        for status in [100, 103, 204, 205] {
            assert!(is_trusted(None, false, status, false), "{status}");
            assert!(is_trusted(Some(0), false, status, false), "{status}");
            assert!(!is_trusted(Some(5), false, status, false), "{status}");
            assert!(!is_trusted(None, true, status, false), "{status}");
        }
        assert!(is_trusted(Some(5), false, 304, false));
        assert!(!is_trusted(None, true, 304, false));
        assert!(is_trusted(Some(5), false, 200, true));
        assert!(!is_trusted(None, true, 200, true));
        assert!(is_trusted(Some(5), false, 200, false) && is_trusted(None, true, 200, false));
        assert!(!is_trusted(Some(5), true, 200, false));
    }

    /// L1: what comes first in RFC 9112 section 6.3 counts.
    #[test]
    fn the_order_of_precedence() {
        let framing = |length, chunked, status: u16, to_head| {
            Framed { length, chunked, is_odd: false }.framing(StatusCode::from_u16(status).unwrap(), to_head)
        };
        assert_eq!(framing(Some(5), true, 200, true), Framing::Length(0));
        for status in [101, 204, 304] {
            assert_eq!(framing(Some(5), false, status, false), Framing::Length(0));
        }
        assert_eq!(framing(Some(5), true, 200, false), Framing::Chunked);
        assert_eq!(framing(Some(5), false, 404, false), Framing::Length(5));
        assert_eq!(framing(None, false, 200, false), Framing::UntilClose);
    }
}
