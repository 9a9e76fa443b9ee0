//! [`RetryAfter`]: when a server asks a client to try again.

use std::{fmt, time::Duration};

use http::{HeaderMap, header};

/// The number of seconds in the header `Retry-After` of a response (RFC 9110 section 10.2.3). None
/// without the header, and for a date.
///
/// It is displayed as advice for the end of an error message, and as nothing if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryAfter(Option<u64>);

impl RetryAfter {
    /// Reads the header.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        Self(text.and_then(|text| text.trim().parse().ok()))
    }

    /// The time to wait.
    pub fn delay(self) -> Option<Duration> {
        self.0.map(Duration::from_secs)
    }
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => write!(f, "; the server asks to try again in {seconds} s"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn seconds_are_read() {
        for (value, seconds) in [
            ("5", Some(5)),
            (" 30 ", Some(30)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", None),
            ("-1", None),
            ("18446744073709551616", None),
        ] {
            let headers =
                HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(
                RetryAfter::of(&headers).delay(),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
        assert_eq!(RetryAfter::of(&HeaderMap::new()), RetryAfter::default());
    }

    #[test]
    fn it_is_shown_as_advice() {
        assert_eq!(
            RetryAfter(Some(5)).to_string(),
            "; the server asks to try again in 5 s"
        );
        assert_eq!(RetryAfter::default().to_string(), "");
    }
}
