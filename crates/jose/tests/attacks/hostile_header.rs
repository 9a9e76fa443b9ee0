//! Malformed headers, and headers that name their own keys, are rejected.

use std::sync::LazyLock;

use portcullis_jose::{Algorithm, CompactJws, JoseError, KeySet, SigningKey};
use serde_json::json;

use crate::support::{PAYLOAD, key, published, verify};

static KEY: LazyLock<std::sync::Arc<SigningKey>> = LazyLock::new(|| key(Algorithm::Es256, "ec"));

fn keys() -> KeySet {
    published(&[&KEY])
}

/// Returns a validly signed token with this header.
fn token(header: impl AsRef<[u8]>) -> String {
    KEY.dangerous_sign_with_header(header.as_ref(), PAYLOAD)
        .unwrap()
}

fn assert_rejected(header: impl AsRef<[u8]>, expected: JoseError) {
    assert_eq!(
        verify(&keys(), &token(&header)),
        Err(expected),
        "{}",
        String::from_utf8_lossy(header.as_ref())
    );
}

/// C2: `crit` is rejected with any value, including the empty array that josekit accepts.
#[test]
fn crit_with_any_value() {
    for crit in [
        "[]",
        r#"["exp"]"#,
        r#"["b64"]"#,
        "null",
        "{}",
        "false",
        r#""exp""#,
    ] {
        assert_rejected(
            format!(r#"{{"alg":"ES256","kid":"ec","crit":{crit}}}"#),
            JoseError::UnsupportedExtension,
        );
        assert_rejected(
            format!(r#"{{"\u0063rit":{crit},"alg":"ES256","kid":"ec"}}"#),
            JoseError::UnsupportedExtension,
        );
    }
}

/// C2: `b64` is rejected with any value, with and without `crit`.
#[test]
fn b64_with_any_value() {
    for b64 in ["false", "true", "null", "0"] {
        assert_rejected(
            format!(r#"{{"alg":"ES256","kid":"ec","b64":{b64}}}"#),
            JoseError::UnsupportedExtension,
        );
        assert_rejected(
            format!(r#"{{"alg":"ES256","kid":"ec","b64":{b64},"crit":["b64"]}}"#),
            JoseError::UnsupportedExtension,
        );
    }
}

/// C2: duplicate members are rejected, whether they are known or not, and whether the name is
/// escaped or not.
#[test]
fn duplicate_members() {
    for header in [
        r#"{"alg":"none","alg":"ES256","kid":"ec"}"#,
        r#"{"alg":"ES256","alg":"ES256","kid":"ec"}"#,
        r#"{"alg":"ES256","kid":"other","kid":"ec"}"#,
        r#"{"alg":"ES256","kid":"ec","typ":"JWT","typ":"at+jwt"}"#,
        r#"{"alg":"ES256","kid":"ec","unknown":1,"unknown":1}"#,
        r#"{"alg":"ES256","kid":"ec","jku":[],"\u006aku":{}}"#,
        r#"{"alg":"ES256","kid":"ec","":1,"":2}"#,
        r#"{"alg":"none","kid":"ec","typ":"JWT","alg":"ES256"}"#,
        r#"{"kid":"other","alg":"ES256","x":{"kid":1},"y":2,"\u006bid":"ec"}"#,
    ] {
        assert_rejected(header, JoseError::DuplicateMember);
    }
}

/// C2: keys in the header are never used. The published key decides.
#[test]
fn embedded_and_referenced_keys() {
    let attacker = key(Algorithm::Es256, "ec");
    for member in [
        json!({ "jwk": attacker.public_jwk() }),
        json!({ "jku": "https://attacker.example/jwks" }),
        json!({ "x5u": "https://attacker.example/cert.pem" }),
        json!({ "x5c": ["MIIB"] }),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "ec" });
        header
            .as_object_mut()
            .unwrap()
            .extend(member.as_object().unwrap().clone());
        let header = header.to_string();
        let forged = attacker
            .dangerous_sign_with_header(header.as_bytes(), PAYLOAD)
            .unwrap();
        assert_eq!(
            verify(&keys(), &forged),
            Err(JoseError::Signature),
            "{header}"
        );
        assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
    }
}

/// C2: unknown members of any type are ignored.
#[test]
fn unknown_members() {
    for value in [
        "1",
        "1e999",
        "-0.0",
        "null",
        "true",
        r#""\ud800""#,
        "[[[]]]",
        r#"{"alg":"none","alg":"none"}"#,
    ] {
        let header = format!(
            r#"{{"alg":"ES256","kid":"ec","unknown":{value},"zip":{value},"x5t#S256":{value}}}"#
        );
        assert_eq!(
            verify(&keys(), &token(&header)),
            Ok(PAYLOAD.to_vec()),
            "{header}"
        );
    }
}

/// C2: encrypted tokens are rejected.
#[test]
fn encrypted_tokens() {
    assert_rejected(
        r#"{"alg":"ES256","kid":"ec","enc":"A128GCM"}"#,
        JoseError::Encrypted,
    );
    assert_rejected(r#"{"alg":"dir","enc":"A128GCM"}"#, JoseError::Encrypted);
    assert_eq!(
        verify(&keys(), "e30.AA.AA.AA.AA"),
        Err(JoseError::Encrypted)
    );
    assert_eq!(
        verify(&keys(), &format!("{}..", token(r#"{"alg":"ES256"}"#))),
        Err(JoseError::Encrypted)
    );
}

#[test]
fn a_header_must_be_an_object() {
    for header in [
        "",
        " ",
        "null",
        "[]",
        "\"\"",
        "{",
        "{}",
        "{}{}",
        r#"{"alg":"ES256","kid":"ec"}x"#,
        r#"{"alg":"ES256","kid":"ec"}{"alg":"none"}"#,
        r#"{"alg":"ES256","kid":"ec",}"#,
        r#"["ES256"]"#,
        r#"{"kid":"ec"}"#,
        "\u{feff}{\"alg\":\"ES256\",\"kid\":\"ec\"}",
        r#"{"alg":"ES256","kid":"ec"/**/}"#,
    ] {
        assert_rejected(header, JoseError::MalformedHeader);
    }
    assert_rejected(
        b"{\"alg\":\"ES256\",\"kid\":\"ec\",\"x\":\"\xff\"}",
        JoseError::MalformedHeader,
    );

    let with_whitespace = " {\n\"alg\" :\t\"ES256\", \"kid\":\"ec\" }\r\n";
    assert_eq!(
        verify(&keys(), &token(with_whitespace)),
        Ok(PAYLOAD.to_vec())
    );
}

#[test]
fn known_members_must_be_strings() {
    for value in ["null", "1", "[]", "{}", "true", r#"["ES256"]"#] {
        assert_rejected(
            format!(r#"{{"alg":{value},"kid":"ec"}}"#),
            JoseError::MalformedHeader,
        );
        assert_rejected(
            format!(r#"{{"alg":"ES256","kid":{value}}}"#),
            JoseError::MalformedHeader,
        );
        assert_rejected(
            format!(r#"{{"alg":"ES256","kid":"ec","typ":{value}}}"#),
            JoseError::MalformedHeader,
        );
    }
}

#[test]
fn escapes_are_decoded() {
    let token = token(r#"{"\u0061lg":"\u0045S256","kid":"\u0065c","typ":"at\u002bjwt"}"#);
    let compact = CompactJws::parse(&token, 1024).unwrap();
    let header = compact.header();
    assert_eq!(header.alg(), Algorithm::Es256);
    assert_eq!(header.kid(), Some("ec"));
    assert_eq!(header.typ(), Some("at+jwt"));
}

#[test]
fn the_number_of_members_is_limited() {
    let with = |count: usize| {
        let others: String = (0..count).map(|n| format!(r#","m{n}":0"#)).collect();
        format!(r#"{{"alg":"ES256","kid":"ec"{others}}}"#)
    };
    assert_eq!(verify(&keys(), &token(with(62))), Ok(PAYLOAD.to_vec()));
    assert_rejected(with(63), JoseError::MalformedHeader);
    assert_rejected(with(1000), JoseError::MalformedHeader);
}

#[test]
fn deep_nesting_does_not_panic() {
    let header = format!(
        r#"{{"alg":"ES256","kid":"ec","x":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
}

#[test]
fn long_headers_are_accepted() {
    let header = format!(
        r#"{{"alg":"ES256","kid":"ec","x5c":["{}"]}}"#,
        "A".repeat(4000)
    );
    assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
}
