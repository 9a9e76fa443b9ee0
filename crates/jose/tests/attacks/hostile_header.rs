use std::sync::LazyLock;

use portcullis_jose::{Algorithm, Compact, JoseError, KeySet, KnownHeader, SigningKey};
use serde_json::json;

use crate::support::{PAYLOAD, key, published, verify};

static KEY: LazyLock<std::sync::Arc<SigningKey>> = LazyLock::new(|| key(Algorithm::Es256, "ec"));

fn keys() -> KeySet {
    published(&[&KEY])
}

/// A token whose signature is good and whose header is these bytes.
fn token(header: impl AsRef<[u8]>) -> String {
    KEY.dangerous_sign_with_header(header.as_ref(), PAYLOAD).unwrap()
}

fn refused(header: impl AsRef<[u8]>, expected: JoseError) {
    assert_eq!(verify(&keys(), &token(&header)), Err(expected), "{}", String::from_utf8_lossy(header.as_ref()));
}

/// C2: a header that is known stands in for exactly its own text: whatever else a token begins with is read, and
/// refused as ever.
#[test]
fn near_a_known_header() {
    let good = token(r#"{"alg":"ES256","kid":"ec"}"#);
    let known = KnownHeader::of(&Compact::parse(&good, 4096).unwrap());
    let parse = |token: &str| Compact::parse_knowing(token, 4096, Some(&known)).map(|read| read.header().clone());
    assert!(known.is_that_of(&good));
    assert_eq!(parse(&good).unwrap().kid(), Some("ec"));
    let (segment, rest) = good.split_once('.').unwrap();
    for near in [
        format!("{segment}A.{rest}"),
        format!("{}.{rest}", &segment[..segment.len() - 1]),
        format!(".{segment}.{rest}"),
        segment.to_owned(),
        format!("A{segment}.{rest}"),
        String::new(),
    ] {
        assert!(!known.is_that_of(&near), "{near}");
        assert!(parse(&near).is_err(), "{near}");
    }
    let other = token(r#"{"alg":"ES256","kid":"ed"}"#);
    assert!(!known.is_that_of(&other));
    assert_eq!(parse(&other).unwrap().kid(), Some("ed"));
    for (header, error) in [
        (r#"{"alg":"ES256","kid":"ec","crit":[]}"#, JoseError::Extension),
        (r#"{"alg":"none","kid":"ec"}"#, JoseError::UnsupportedAlgorithm),
    ] {
        assert_eq!(parse(&token(header)), Err(error), "{header}");
    }
    assert_eq!(parse(&format!("{segment}..")), Err(JoseError::Malformed));
}

/// C2: `crit` is refused in any form, the empty array that the library beneath lets through included.
#[test]
fn crit_in_any_form() {
    for crit in ["[]", r#"["exp"]"#, r#"["b64"]"#, "null", "{}", "false", r#""exp""#] {
        refused(format!(r#"{{"alg":"ES256","kid":"ec","crit":{crit}}}"#), JoseError::Extension);
        refused(format!(r#"{{"\u0063rit":{crit},"alg":"ES256","kid":"ec"}}"#), JoseError::Extension);
    }
}

/// C2: `b64` is refused in any form, with `crit` and without.
#[test]
fn b64_in_any_form() {
    for b64 in ["false", "true", "null", "0"] {
        refused(format!(r#"{{"alg":"ES256","kid":"ec","b64":{b64}}}"#), JoseError::Extension);
        refused(format!(r#"{{"alg":"ES256","kid":"ec","b64":{b64},"crit":["b64"]}}"#), JoseError::Extension);
    }
}

/// C2: a header member that occurs twice is refused, whatever its name, escaped or not.
#[test]
fn repeated_members() {
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
        refused(header, JoseError::DuplicateMember);
    }
}

/// C2: members that bring keys along are never used; the published key decides.
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
        header.as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
        let header = header.to_string();
        let forged = attacker.dangerous_sign_with_header(header.as_bytes(), PAYLOAD).unwrap();
        assert_eq!(verify(&keys(), &forged), Err(JoseError::Signature), "{header}");
        assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
    }
}

/// C2: unknown members of any type are ignored.
#[test]
fn unknown_members() {
    for value in ["1", "1e999", "-0.0", "null", "true", r#""\ud800""#, "[[[]]]", r#"{"alg":"none","alg":"none"}"#] {
        let header = format!(r#"{{"alg":"ES256","kid":"ec","unknown":{value},"zip":{value},"x5t#S256":{value}}}"#);
        assert_eq!(verify(&keys(), &token(&header)), Ok(PAYLOAD.to_vec()), "{header}");
    }
}

/// C2: an encrypted token is refused as such.
#[test]
fn encrypted_tokens() {
    refused(r#"{"alg":"ES256","kid":"ec","enc":"A128GCM"}"#, JoseError::Encrypted);
    refused(r#"{"alg":"dir","enc":"A128GCM"}"#, JoseError::Encrypted);
    assert_eq!(verify(&keys(), "e30.AA.AA.AA.AA"), Err(JoseError::Encrypted));
    assert_eq!(verify(&keys(), &format!("{}..", token(r#"{"alg":"ES256"}"#))), Err(JoseError::Encrypted));
}

#[test]
fn a_header_is_one_object() {
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
        refused(header, JoseError::Header);
    }
    refused(b"{\"alg\":\"ES256\",\"kid\":\"ec\",\"x\":\"\xff\"}", JoseError::Header);
    let spaced = " {\n\"alg\" :\t\"ES256\", \"kid\":\"ec\" }\r\n";
    assert_eq!(verify(&keys(), &token(spaced)), Ok(PAYLOAD.to_vec()));
}

#[test]
fn what_is_read_is_a_string() {
    for value in ["null", "1", "[]", "{}", "true", r#"["ES256"]"#] {
        refused(format!(r#"{{"alg":{value},"kid":"ec"}}"#), JoseError::Header);
        refused(format!(r#"{{"alg":"ES256","kid":{value}}}"#), JoseError::Header);
        refused(format!(r#"{{"alg":"ES256","kid":"ec","typ":{value}}}"#), JoseError::Header);
    }
}

#[test]
fn escapes_are_read() {
    let token = token(r#"{"\u0061lg":"\u0045S256","kid":"\u0065c","typ":"at\u002bjwt"}"#);
    let compact = Compact::parse(&token, 1024).unwrap();
    let header = compact.header();
    assert_eq!((header.alg(), header.kid(), header.typ()), (Algorithm::Es256, Some("ec"), Some("at+jwt")));
}

#[test]
fn members_are_bounded() {
    let with = |count: usize| {
        let others: String = (0..count).map(|n| format!(r#","m{n}":0"#)).collect();
        format!(r#"{{"alg":"ES256","kid":"ec"{others}}}"#)
    };
    assert_eq!(verify(&keys(), &token(with(62))), Ok(PAYLOAD.to_vec()));
    refused(with(63), JoseError::Header);
    refused(with(1000), JoseError::Header);
}

#[test]
fn deep_nesting_is_no_panic() {
    let header = format!(r#"{{"alg":"ES256","kid":"ec","x":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
}

#[test]
fn long_headers_are_read() {
    let header = format!(r#"{{"alg":"ES256","kid":"ec","x5c":["{}"]}}"#, "A".repeat(4000));
    assert_eq!(verify(&keys(), &token(header)), Ok(PAYLOAD.to_vec()));
}
