//! What a token looks like from the outside, where it is no signed token that could be verified here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{Issuer, unverified_issuer};

/// Whether the issuer that is asked about opaque tokens may be shown this one: it is opaque, or a JWS that claims to be
/// that issuer's. A JWS of anybody else is nobody's business there.
pub(crate) fn may_be_shown_to(issuer: &Issuer, token: &str) -> bool {
    let Some(payload) = jws_payload(token) else { return true };
    let claimed = URL_SAFE_NO_PAD.decode(payload).ok().and_then(|payload| unverified_issuer(&payload).ok().flatten());
    claimed.is_some_and(|claimed| claimed == issuer.as_str())
}

/// The payload's segment of a token in the form of a JWS (RFC 7515 section 7.1): three segments, of which the first is
/// that of a JSON object. None where the token is opaque.
fn jws_payload(token: &str) -> Option<&str> {
    let mut segments = token.split('.');
    let (header, payload, _) = (segments.next()?, segments.next()?, segments.next()?);
    if segments.next().is_some() {
        return None;
    }
    let header = URL_SAFE_NO_PAD.decode(header).ok()?;
    (header.trim_ascii_start().first() == Some(&b'{')).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(token: &str) -> bool {
        may_be_shown_to(&Issuer::parse("https://issuer.example").unwrap(), token)
    }

    fn jws(header: &str, payload: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload))
    }

    /// C1: what is no JWS is opaque, dots or not.
    #[test]
    fn opaque_tokens_are_shown() {
        for token in ["opaque", "a.b", "a.b.c", "v4.local.AAAA", "v4.public.AAAA.AAAA", "a.b.c.d.e", "..", "!.!.!"] {
            assert!(shown(token), "{token}");
        }
    }

    /// C1: a JWS goes to the issuer that it names, whatever its header says, and to no other.
    #[test]
    fn a_jws_is_shown_to_its_own_issuer() {
        for header in [r#"{"alg":"RS256"}"#, r#"{"alg":"HS256"}"#, " {", r#"{"alg":"none"}"#] {
            assert!(shown(&jws(header, r#"{"iss":"https://issuer.example"}"#)), "{header}");
            for payload in [
                r#"{"iss":"https://issuer.example/"}"#,
                r#"{"iss":"https://other.example"}"#,
                r#"{"iss":"https://issuer.example","iss":"https://issuer.example"}"#,
                r#"{"iss":7}"#,
                "{}",
                "not json",
            ] {
                assert!(!shown(&jws(header, payload)), "{header} {payload}");
            }
        }
        assert!(!shown(&format!("{}.!.", URL_SAFE_NO_PAD.encode("{}"))));
    }
}
