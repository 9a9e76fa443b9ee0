use http::{HeaderValue, StatusCode};

use crate::ProtocolError;

/// The length of a response body (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// This many bytes.
    Known(u64),
    /// Up to the last chunk.
    Chunked,
    /// Up to the end of the connection.
    UntilClose,
}

/// The values of `Content-Length` and `Transfer-Encoding`.
#[derive(Default)]
pub(super) struct FramingHeaders {
    content_length: Option<u64>,
    chunked: bool,
    /// Whether `Content-Length` is a list or has leading zeros.
    is_noncanonical: bool,
}

impl FramingHeaders {
    /// Adds a `Content-Length` header. A list that repeats one number is that number; any other
    /// list is an error (RFC 9110 section 8.6).
    pub(super) fn add_content_length(&mut self, value: &HeaderValue) -> Result<(), ProtocolError> {
        for element in value.as_bytes().split(|&b| b == b',') {
            let digits = element.trim_ascii();
            let length = parse_decimal(digits)?;
            self.is_noncanonical |=
                self.content_length.is_some() || (digits.len() > 1 && digits.starts_with(b"0"));
            if self.content_length.is_some_and(|earlier| earlier != length) {
                return Err(ProtocolError::ContentLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    /// Adds a `Transfer-Encoding` header. Only a single `chunked` is accepted: requests of this
    /// client allow no other coding.
    pub(super) fn add_transfer_encoding(
        &mut self,
        value: &HeaderValue,
    ) -> Result<(), ProtocolError> {
        if self.chunked || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(ProtocolError::TransferEncoding);
        }
        self.chunked = true;
        Ok(())
    }

    /// Returns whether the body is chunked.
    pub(super) fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// The content length if it is not written as one number without leading zeros, such as `5, 5`
    /// or `005`. Another recipient may not understand it.
    pub(super) fn noncanonical_length(&self) -> Option<u64> {
        self.content_length.filter(|_| self.is_noncanonical)
    }

    /// Whether all parsers agree on where the response ends, so that the connection can be reused.
    /// They can disagree on:
    /// - `Content-Length` together with `Transfer-Encoding` (RFC 9112 section 6.1), and a
    ///   noncanonical length;
    /// - a body that the response cannot have: a nonzero length with 1xx, 204 or 205, and
    ///   `Transfer-Encoding` with 1xx, 204, 205, 304 or a response to HEAD. If the server sends
    ///   this body, it looks like the next response.
    pub(super) fn is_unambiguous(&self, status: StatusCode, is_response_to_head: bool) -> bool {
        let has_length = self.content_length.is_some_and(|length| length > 0);
        let is_bodiless = is_bodiless(status) || status == StatusCode::RESET_CONTENT;
        let contradicts = self.chunked && self.content_length.is_some();
        let announces_impossible_body = match status {
            // Content-Length describes the response to a GET here, and for HEAD below.
            StatusCode::NOT_MODIFIED => self.chunked,
            _ if is_response_to_head => self.chunked,
            _ => is_bodiless && (self.chunked || has_length),
        };
        !contradicts && !self.is_noncanonical && !announces_impossible_body
    }

    /// The length of the body, by the precedence of RFC 9112 section 6.3.
    pub(super) fn body_length(&self, status: StatusCode, is_response_to_head: bool) -> BodyLength {
        match self.content_length {
            _ if is_response_to_head || is_bodiless(status) => BodyLength::Known(0),
            _ if self.chunked => BodyLength::Chunked,
            Some(length) => BodyLength::Known(length),
            None => BodyLength::UntilClose,
        }
    }
}

/// Whether a response with this status ends with its head (RFC 9112 section 6.3).
pub(super) fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn parse_decimal(digits: &[u8]) -> Result<u64, ProtocolError> {
    // `parse` accepts a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(ProtocolError::ContentLength);
    }
    str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(ProtocolError::ContentLength)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(values: &[&'static str]) -> Result<Option<u64>, ProtocolError> {
        let mut headers = FramingHeaders::default();
        for value in values {
            headers.add_content_length(&HeaderValue::from_static(value))?;
        }
        Ok(headers.content_length)
    }

    /// L1: a content length is one number, possibly repeated.
    #[test]
    fn lengths() {
        for (values, expected) in [
            (&["0"][..], 0),
            (&["007"], 7),
            (&["5, 5"], 5),
            (&["5", "5"], 5),
            (&["18446744073709551615"], u64::MAX),
        ] {
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
            assert_eq!(
                length(values),
                Err(ProtocolError::ContentLength),
                "{values:?}"
            );
        }
    }

    /// L1: the only transfer coding is chunked, applied once.
    #[test]
    fn transfer_codings() {
        let read = |values: &[&'static str]| {
            let mut headers = FramingHeaders::default();
            values.iter().try_for_each(|value| {
                headers.add_transfer_encoding(&HeaderValue::from_static(value))
            })
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
            assert_eq!(
                read(values),
                Err(ProtocolError::TransferEncoding),
                "{values:?}"
            );
        }
    }

    /// L10: a noncanonical length is reported as a number and makes the end of the response
    /// ambiguous.
    #[test]
    fn noncanonical_lengths() {
        for (values, expected) in [
            (&["5"][..], None),
            (&["0"], None),
            (&["10"], None),
            (&["5, 5"], Some(5)),
            (&["5", "5"], Some(5)),
            (&["005"], Some(5)),
            (&["00"], Some(0)),
        ] {
            let mut headers = FramingHeaders::default();
            values.iter().for_each(|value| {
                headers
                    .add_content_length(&HeaderValue::from_static(value))
                    .unwrap()
            });
            assert_eq!(headers.noncanonical_length(), expected, "{values:?}");
            assert_eq!(
                headers.is_unambiguous(StatusCode::OK, false),
                expected.is_none(),
                "{values:?}"
            );
        }
    }

    /// L10: a bodiless response that announces a body is ambiguous, unless the header describes
    /// another response.
    #[test]
    fn impossible_bodies_are_ambiguous() {
        let is_unambiguous = |length, chunked, status: u16, is_response_to_head| {
            let headers = FramingHeaders {
                content_length: length,
                chunked,
                is_noncanonical: false,
            };
            headers.is_unambiguous(StatusCode::from_u16(status).unwrap(), is_response_to_head)
        };
        for status in [100, 103, 204, 205] {
            assert!(is_unambiguous(None, false, status, false), "{status}");
            assert!(is_unambiguous(Some(0), false, status, false), "{status}");
            assert!(!is_unambiguous(Some(5), false, status, false), "{status}");
            assert!(!is_unambiguous(None, true, status, false), "{status}");
        }
        assert!(is_unambiguous(Some(5), false, 304, false));
        assert!(!is_unambiguous(None, true, 304, false));
        assert!(is_unambiguous(Some(5), false, 200, true));
        assert!(!is_unambiguous(None, true, 200, true));
        assert!(is_unambiguous(Some(5), false, 200, false));
        assert!(is_unambiguous(None, true, 200, false));
        assert!(!is_unambiguous(Some(5), true, 200, false));
    }

    /// L1: the length follows the order of precedence of RFC 9112 section 6.3.
    #[test]
    fn the_order_of_precedence() {
        let body_length = |length, chunked, status: u16, is_response_to_head| {
            FramingHeaders {
                content_length: length,
                chunked,
                is_noncanonical: false,
            }
            .body_length(StatusCode::from_u16(status).unwrap(), is_response_to_head)
        };
        assert_eq!(body_length(Some(5), true, 200, true), BodyLength::Known(0));
        for status in [101, 204, 304] {
            assert_eq!(
                body_length(Some(5), false, status, false),
                BodyLength::Known(0)
            );
        }
        assert_eq!(body_length(Some(5), true, 200, false), BodyLength::Chunked);
        assert_eq!(
            body_length(Some(5), false, 404, false),
            BodyLength::Known(5)
        );
        assert_eq!(body_length(None, false, 200, false), BodyLength::UntilClose);
    }
}
