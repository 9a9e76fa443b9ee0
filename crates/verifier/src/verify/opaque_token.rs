use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{Issuer, unverified_issuer};

/// Returns whether the issuer that introspects opaque tokens may receive this one: it is opaque, or
/// a JWS that names this issuer. A JWS of another issuer is never sent.
pub(super) fn may_be_sent_to(issuer: &Issuer, token: &str) -> bool {
    let Some(payload) = jws_payload(token) else {
        return true;
    };
    let claimed = URL_SAFE_NO_PAD
        .decode(payload)
        .ok()
        .and_then(|payload| unverified_issuer(&payload).ok().flatten());
    claimed.is_some_and(|claimed| claimed == issuer.as_str())
}

/// Returns the payload segment of a token that has the form of a JWS (RFC 7515 section 7.1): three
/// segments, the first of which encodes a JSON object. Returns `None` for opaque tokens.
fn jws_payload(token: &str) -> Option<&str> {
    let mut segments = token.split('.');
    let header = segments.next()?;
    let payload = segments.next()?;
    let _ = segments.next()?;
    if segments.next().is_some() {
        return None;
    }
    let header = URL_SAFE_NO_PAD.decode(header).ok()?;
    (header.trim_ascii_start().first() == Some(&b'{')).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_sent(token: &str) -> bool {
        may_be_sent_to(&Issuer::parse("https://issuer.example").unwrap(), token)
    }

    fn jws(header: &str, payload: &str) -> String {
        format!(
            "{}.{}.c2ln",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(payload)
        )
    }

    /// C1: a token that is not a JWS is opaque, with or without dots.
    #[test]
    fn opaque_tokens_are_sent() {
        for token in [
            "opaque",
            "a.b",
            "a.b.c",
            "v4.local.AAAA",
            "v4.public.AAAA.AAAA",
            "a.b.c.d.e",
            "..",
            "!.!.!",
        ] {
            assert!(is_sent(token), "{token}");
        }
    }

    /// C1: a JWS is sent only to the issuer that it names, with any header.
    #[test]
    fn a_jws_is_sent_to_its_own_issuer() {
        for header in [
            r#"{"alg":"RS256"}"#,
            r#"{"alg":"HS256"}"#,
            " {",
            r#"{"alg":"none"}"#,
        ] {
            assert!(
                is_sent(&jws(header, r#"{"iss":"https://issuer.example"}"#)),
                "{header}"
            );
            for payload in [
                r#"{"iss":"https://issuer.example/"}"#,
                r#"{"iss":"https://other.example"}"#,
                r#"{"iss":"https://issuer.example","iss":"https://issuer.example"}"#,
                r#"{"iss":7}"#,
                "{}",
                "not json",
            ] {
                assert!(!is_sent(&jws(header, payload)), "{header} {payload}");
            }
        }
        assert!(!is_sent(&format!("{}.!.", URL_SAFE_NO_PAD.encode("{}"))));
    }
}
