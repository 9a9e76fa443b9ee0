//! [`Authority`]: a host with an optional port.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use http::HeaderValue;
use portcullis_metadata::EscapedText;

/// The maximum number of characters that are printed: those of a domain name.
const MAX_HOST: usize = 253;

/// A host with an optional port (RFC 9110 section 7.2), borrowed from a header or a request target.
/// User information is not accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authority<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses a header value. Returns `None` if it is malformed.
    pub(super) fn parse_header(value: &'a HeaderValue) -> Option<Self> {
        Self::parse(value.to_str().ok()?)
    }

    /// Parses `name`, `name:port`, or an IPv6 address in brackets with an optional port. Returns
    /// `None` for other text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let end = if text.starts_with('[') {
            text.find(']')? + 1
        } else {
            text.find(':').unwrap_or(text.len())
        };
        let (host, port) = text.split_at(end);
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            None => return None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        let well_formed = match host
            .strip_prefix('[')
            .and_then(|inner| inner.strip_suffix(']'))
        {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_name_byte),
        };
        if well_formed {
            Some(Self { host, port })
        } else {
            None
        }
    }

    /// Returns whether both have the same host and port. `default` replaces a missing port.
    pub(super) fn agrees(&self, other: &Self, default: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(other.host)
            && self.port.or(default) == other.port.or(default)
    }

    /// Returns whether the host is `localhost` or a name below it, in `127.0.0.0/8`, or `[::1]`.
    /// Names are not resolved.
    pub(super) fn is_loopback(&self) -> bool {
        if let Some(address) = self
            .host
            .strip_prefix('[')
            .and_then(|inner| inner.strip_suffix(']'))
        {
            return address
                .parse::<Ipv6Addr>()
                .is_ok_and(|address| address.is_loopback());
        }
        if let Ok(address) = self.host.parse::<Ipv4Addr>() {
            return address.is_loopback();
        }
        let is_suffix = |suffix: &str| {
            let start = self.host.len().checked_sub(suffix.len());
            start
                .and_then(|start| self.host.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        };
        self.host.eq_ignore_ascii_case("localhost") || is_suffix(".localhost")
    }
}

/// Prints at most [`MAX_HOST`] characters of the host, and the port.
impl fmt::Display for Authority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", EscapedText::first(self.host, MAX_HOST))?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// `unreserved`, `sub-delims` and `%` of RFC 3986 section 3.2.2, except for the comma, because two
/// combined headers would look like one host.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(&byte)
}
