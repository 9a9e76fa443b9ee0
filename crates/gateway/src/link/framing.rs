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
}

impl Framed {
    /// Reads a `Content-Length`. A list of the same number is that number, all else is refused (RFC 9110 section 8.6).
    pub(crate) fn content_length(&mut self, value: &HeaderValue) -> Result<(), Malformed> {
        for number in value.as_bytes().split(|&b| b == b',') {
            let length = decimal(number.trim_ascii())?;
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

    /// Whether two headers contradict each other: the body is read by one of them, but the connection is not to be
    /// trusted any further (RFC 9112 section 6.1).
    pub(crate) fn is_contradictory(&self) -> bool {
        self.chunked && self.length.is_some()
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

fn is_bodiless(status: StatusCode) -> bool {
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

    /// L1: what comes first in RFC 9112 section 6.3 counts.
    #[test]
    fn the_order_of_precedence() {
        let framing = |length, chunked, status: u16, to_head| {
            Framed { length, chunked }.framing(StatusCode::from_u16(status).unwrap(), to_head)
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
