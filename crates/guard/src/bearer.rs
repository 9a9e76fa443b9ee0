use http::{HeaderMap, header::AUTHORIZATION};

/// Why a request presents no bearer token that could be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBearer {
    /// No `Authorization` header.
    Missing,
    /// `Authorization` of another scheme.
    OtherScheme,
    /// Several `Authorization` headers: which of them counts is anybody's guess.
    Repeated,
    /// The scheme is Bearer and what follows is no token (RFC 6750 section 2.1).
    Malformed,
}

impl NoBearer {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Missing => "bearer.missing",
            Self::OtherScheme => "bearer.other_scheme",
            Self::Repeated => "bearer.repeated",
            Self::Malformed => "bearer.malformed",
        }
    }
}

/// What the request's only `Authorization: Bearer` header presents. Nothing is verified here.
#[derive(Clone, Copy)]
pub(crate) struct Presented<'a>(&'a [u8]);

impl<'a> Presented<'a> {
    pub(crate) fn read(headers: &'a HeaderMap) -> Result<Self, NoBearer> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().ok_or(NoBearer::Missing)?.as_bytes();
        if values.next().is_some() {
            return Err(NoBearer::Repeated);
        }
        let end = value.iter().position(|byte| !is_scheme_byte(*byte)).unwrap_or(value.len());
        let (scheme, rest) = value.split_at(end);
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(NoBearer::OtherScheme);
        }
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        if spaces == 0 { Err(NoBearer::Malformed) } else { Ok(Self(&rest[spaces..])) }
    }

    /// What follows the scheme, whatever it is.
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The token, if it is one.
    pub(crate) fn unverified_token(self) -> Result<&'a str, NoBearer> {
        if !is_b64token(self.0) {
            return Err(NoBearer::Malformed);
        }
        std::str::from_utf8(self.0).map_err(|_| NoBearer::Malformed)
    }
}

fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
fn is_b64token(token: &[u8]) -> bool {
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let text = &token[..token.len() - padding];
    // No early end: without one the compiler compares many bytes at once, and good tokens are the usual case.
    !text.is_empty() && text.iter().fold(true, |good, byte| good & is_token_byte(*byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn one(value: &[u8]) -> Result<String, NoBearer> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        Presented::read(&headers).and_then(Presented::unverified_token).map(str::to_owned)
    }

    #[test]
    fn the_scheme_counts_in_any_case() {
        for value in ["Bearer a.b-c_d~e+f/g==", "bearer a.b-c_d~e+f/g==", "BEARER   a.b-c_d~e+f/g=="] {
            assert_eq!(one(value.as_bytes()).as_deref(), Ok("a.b-c_d~e+f/g=="), "{value}");
        }
    }

    /// B2: another scheme is no error of the client.
    #[test]
    fn other_schemes_are_told_from_malformed_ones() {
        for value in [&b"Basic dTpw"[..], b"DPoP a.b.c", b"Bearerx abc", b"", b"Digest", b"\xff\xfe", b" Bearer a"] {
            assert_eq!(one(value), Err(NoBearer::OtherScheme), "{value:?}");
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
            assert_eq!(one(value), Err(NoBearer::Malformed), "{value:?}");
        }
    }

    /// B2: several headers are refused, equal ones and other schemes included.
    #[test]
    fn several_headers() {
        for second in ["Bearer a", "Basic dTpw"] {
            let mut headers = HeaderMap::new();
            headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
            headers.append(AUTHORIZATION, HeaderValue::from_static(second));
            assert_eq!(Presented::read(&headers).err(), Some(NoBearer::Repeated));
        }
        assert_eq!(Presented::read(&HeaderMap::new()).err(), Some(NoBearer::Missing));
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
