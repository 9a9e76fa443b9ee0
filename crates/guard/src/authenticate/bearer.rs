//! [`BearerCredentials`]: the `Authorization: Bearer` header of a request (RFC 6750 section 2.1).

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use portcullis_reason_codes::ReasonCodes;

/// Why a request has no bearer token that can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ReasonCodes)]
pub(crate) enum NoBearerToken {
    /// There is no `Authorization` header.
    #[code = "bearer.missing"]
    Missing,
    /// `Authorization` has another scheme.
    #[code = "bearer.other_scheme"]
    OtherScheme,
    /// There are several `Authorization` headers. Servers differ in which one they use.
    #[code = "bearer.repeated"]
    Repeated,
    /// The scheme is Bearer, and the rest is not a token (RFC 6750 section 2.1).
    #[code = "bearer.malformed"]
    Malformed,
}

/// The credentials in the only `Authorization: Bearer` header of a request. They are not verified.
#[derive(Clone, Copy)]
pub(crate) struct BearerCredentials<'a>(&'a [u8]);

impl<'a> BearerCredentials<'a> {
    /// Reads the header. The scheme may be in any letter case.
    pub(crate) fn read(headers: &'a HeaderMap) -> Result<Self, NoBearerToken> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().ok_or(NoBearerToken::Missing)?;
        if values.next().is_some() {
            return Err(NoBearerToken::Repeated);
        }
        Self::of_value(value)
    }

    /// Reads the value of the only header.
    pub(crate) fn of_value(value: &'a HeaderValue) -> Result<Self, NoBearerToken> {
        let value = value.as_bytes();
        let end = value
            .iter()
            .position(|byte| !is_scheme_byte(*byte))
            .unwrap_or(value.len());
        let (scheme, rest) = value.split_at(end);
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(NoBearerToken::OtherScheme);
        }
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        if spaces == 0 {
            Err(NoBearerToken::Malformed)
        } else {
            Ok(Self(&rest[spaces..]))
        }
    }

    /// Returns the bytes after the scheme, which need not be a token.
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the token, if the bytes have its syntax.
    pub(crate) fn unverified_token(self) -> Result<&'a str, NoBearerToken> {
        if !is_b64token(self.0) {
            return Err(NoBearerToken::Malformed);
        }
        std::str::from_utf8(self.0).map_err(|_| NoBearerToken::Malformed)
    }
}

/// Returns whether a byte can be part of a scheme, which is a token (RFC 9110 section 5.6.2).
fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

/// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
fn is_b64token(token: &[u8]) -> bool {
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let text = &token[..token.len() - padding];
    // Without an early exit the compiler vectorizes the loop.
    !text.is_empty()
        && text
            .iter()
            .fold(true, |good, byte| good & is_token_byte(*byte))
}

/// Returns whether a byte can be part of a bearer token, apart from the padding.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn one(value: &[u8]) -> Result<String, NoBearerToken> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        BearerCredentials::read(&headers)
            .and_then(BearerCredentials::unverified_token)
            .map(str::to_owned)
    }

    #[test]
    fn the_scheme_is_case_insensitive() {
        for value in [
            "Bearer a.b-c_d~e+f/g==",
            "bearer a.b-c_d~e+f/g==",
            "BEARER   a.b-c_d~e+f/g==",
        ] {
            assert_eq!(
                one(value.as_bytes()).as_deref(),
                Ok("a.b-c_d~e+f/g=="),
                "{value}"
            );
        }
    }

    /// B2: another scheme is distinguished from a malformed Bearer.
    #[test]
    fn other_schemes_are_not_malformed() {
        for value in [
            &b"Basic dTpw"[..],
            b"DPoP a.b.c",
            b"Bearerx abc",
            b"",
            b"Digest",
            b"\xff\xfe",
            b" Bearer a",
        ] {
            assert_eq!(one(value), Err(NoBearerToken::OtherScheme), "{value:?}");
        }
    }

    /// B2: a Bearer without exactly one well-formed token is malformed.
    #[test]
    fn malformed_bearers() {
        for value in [
            &b"Bearer"[..],
            b"Bearer ",
            b"Bearer\ta",
            b"Bearer/a",
            b"Bearer a b",
            b"Bearer a,b",
            b"Bearer =",
            b"Bearer a=b",
            b"Bearer \"a\"",
            b"Bearer a\xff",
            b"Bearer token=a",
            b"Bearer a, Bearer b",
            b"bearer, Basic x",
        ] {
            assert_eq!(one(value), Err(NoBearerToken::Malformed), "{value:?}");
        }
    }

    /// B2: several headers are rejected, even if they are equal or have another scheme.
    #[test]
    fn several_headers() {
        for second in ["Bearer a", "Basic dTpw"] {
            let mut headers = HeaderMap::new();
            headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
            headers.append(AUTHORIZATION, HeaderValue::from_static(second));
            assert_eq!(
                BearerCredentials::read(&headers).err(),
                Some(NoBearerToken::Repeated)
            );
        }
        assert_eq!(
            BearerCredentials::read(&HeaderMap::new()).err(),
            Some(NoBearerToken::Missing)
        );
    }

    proptest! {
        #[test]
        fn no_value_panics(value in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let _ = one(value.as_bytes());
            }
        }

        #[test]
        fn every_b64token_is_read(token in "[A-Za-z0-9._~+/-]{1,64}={0,3}") {
            prop_assert_eq!(one(format!("Bearer {token}").as_bytes()), Ok(token));
        }
    }
}
