//! Malformed and non-canonical encodings are rejected, and no bytes panic.

use std::sync::{Arc, LazyLock};

use portcullis_jose::{Algorithm, CompactJws, JoseError, KeySet, SigningKey};
use proptest::prelude::*;

use crate::support::{PAYLOAD, decode, encode, key, published, verify};

static KEY: LazyLock<Arc<SigningKey>> = LazyLock::new(|| key(Algorithm::EdDsa, "ed"));
static KEYS: LazyLock<KeySet> = LazyLock::new(|| published(&[&KEY]));
static TOKEN: LazyLock<String> = LazyLock::new(|| KEY.sign("at+jwt", PAYLOAD).unwrap());

fn segments() -> [&'static str; 3] {
    let segments: Vec<&str> = TOKEN.split('.').collect();
    segments.try_into().unwrap()
}

/// C9: the size is checked before the token is parsed. A token of exactly the maximum size is
/// accepted.
#[test]
fn longer_than_allowed() {
    let invalid = "x".repeat(101);
    assert_eq!(
        CompactJws::parse(&invalid, 100).unwrap_err(),
        JoseError::TooLarge { limit: 100 }
    );
    assert_eq!(
        CompactJws::parse(&TOKEN, TOKEN.len() - 1).unwrap_err(),
        JoseError::TooLarge {
            limit: TOKEN.len() - 1
        }
    );
    assert!(
        KEYS.verify(&CompactJws::parse(&TOKEN, TOKEN.len()).unwrap())
            .is_ok()
    );
}

#[test]
fn not_three_segments() {
    let [header, payload, signature] = segments();
    for token in [
        String::new(),
        ".".into(),
        "..".into(),
        "...".into(),
        header.into(),
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!(".{payload}.{signature}"),
        format!("{header}.{payload}.{signature}."),
        format!(".{header}.{payload}.{signature}"),
        format!("{header}.{payload}.{signature}.{signature}"),
        format!("{header}.{payload}.{signature}.{signature}.{signature}.{signature}"),
        format!(r#"{{"payload":"{payload}","protected":"{header}","signature":"{signature}"}}"#),
    ] {
        assert!(
            matches!(
                verify(&KEYS, &token),
                Err(JoseError::Malformed | JoseError::MalformedHeader)
            ),
            "{token}"
        );
    }
}

/// C2: a token has only one encoding: padding, whitespace, the other alphabet and non-zero unused
/// bits are rejected in every segment.
#[test]
fn non_canonical_encodings() {
    let original = segments();
    assert_eq!(verify(&KEYS, &TOKEN), Ok(PAYLOAD.to_vec()));
    for position in 0..3 {
        let verify_with = |text: String| {
            let mut segments = original.map(str::to_owned);
            segments[position] = text;
            verify(&KEYS, &segments.join("."))
        };
        let segment = original[position];
        for text in [
            format!("{segment}="),
            format!("{segment}=="),
            format!(" {segment}"),
            format!("{segment}\n"),
            format!("{}\t{}", &segment[..4], &segment[4..]),
            format!("{segment}\u{0}"),
            format!("{segment}?"),
            format!("{segment}+"),
            format!("{segment}/"),
            format!("{segment}é"),
            format!("{segment}A"),
            format!("{segment}%3D"),
        ] {
            assert!(verify_with(text.clone()).is_err(), "{text}");
        }
        // If the length is not a multiple of four, the last character has unused bits.
        if !segment.len().is_multiple_of(4) {
            const ALPHABET: &[u8; 64] =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let last = *segment.as_bytes().last().unwrap();
            let index = ALPHABET.iter().position(|letter| *letter == last).unwrap();
            let text = format!(
                "{}{}",
                &segment[..segment.len() - 1],
                char::from(ALPHABET[index + 1])
            );
            assert!(verify_with(text).is_err());
        }
    }
    assert!(
        original
            .iter()
            .any(|segment| !segment.len().is_multiple_of(4))
    );
}

/// C2: a signature must have the exact length for its key. Truncated, extended and DER signatures
/// are rejected.
#[test]
fn signatures_of_another_length() {
    for algorithm in [
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Es512,
        Algorithm::EdDsa,
    ] {
        let signer = key(algorithm, "k");
        let keys = published(&[&signer]);
        let token = signer.sign("at+jwt", PAYLOAD).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let bytes = decode(signature);
        let expected = match algorithm {
            Algorithm::Es384 => 96,
            Algorithm::Es512 => 132,
            _ => 64,
        };
        assert_eq!(bytes.len(), expected);
        for changed in [
            &bytes[1..],
            &bytes[..expected - 1],
            &[&bytes[..], &[0]].concat(),
            &[&[0], &bytes[..]].concat(),
            &[0],
            &vec![0xff; expected],
            &vec![0xff; 5000],
            &vec![0; expected],
        ] {
            let token = format!("{signed}.{}", encode(changed));
            assert_eq!(
                verify(&keys, &token),
                Err(JoseError::Signature),
                "{algorithm}"
            );
        }
    }
}

#[test]
fn an_empty_payload_is_accepted() {
    assert_eq!(verify(&KEYS, &KEY.sign("JWT", b"").unwrap()), Ok(vec![]));
}

proptest! {
    #[test]
    fn random_strings_do_not_panic(token in ".{0,200}") {
        let _ = verify(&KEYS, &token);
    }

    #[test]
    fn random_headers_and_payloads_do_not_panic(
        header in proptest::collection::vec(any::<u8>(), 0..60),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let token = KEY.dangerous_sign_with_header(&header, &payload).unwrap();
        let _ = verify(&KEYS, &token);
    }

    /// Signed tokens parse to their input.
    #[test]
    fn signed_tokens_round_trip(typ in ".{0,20}", kid in ".{0,20}", payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let header = serde_json::json!({ "alg": "Ed25519", "typ": typ, "kid": kid }).to_string();
        let token = KEY.dangerous_sign_with_header(header.as_bytes(), &payload).unwrap();
        let compact = CompactJws::parse(&token, 4096).unwrap();
        prop_assert_eq!(compact.header().alg(), Algorithm::EdDsa);
        prop_assert_eq!(compact.header().typ(), Some(&*typ));
        prop_assert_eq!(compact.header().kid(), Some(&*kid));
        prop_assert_eq!(compact.unverified_payload(), &*payload);
    }

    /// A token with one changed character does not verify.
    #[test]
    fn one_changed_character_invalidates_the_token(index in any::<prop::sample::Index>(), letter in "[ -~]") {
        let index = index.index(TOKEN.len());
        let mut changed = TOKEN.clone();
        changed.replace_range(index..=index, &letter);
        prop_assert_eq!(verify(&KEYS, &changed).is_ok(), changed == *TOKEN);
    }
}
