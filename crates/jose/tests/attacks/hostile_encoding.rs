use std::sync::{Arc, LazyLock};

use portcullis_jose::{Algorithm, Compact, JoseError, KeySet, SigningKey};
use proptest::prelude::*;

use crate::support::{PAYLOAD, key, published, verify};

static KEY: LazyLock<Arc<SigningKey>> = LazyLock::new(|| key(Algorithm::EdDsa, "ed"));
static KEYS: LazyLock<KeySet> = LazyLock::new(|| published(&[&KEY]));
static TOKEN: LazyLock<String> = LazyLock::new(|| KEY.sign("at+jwt", PAYLOAD).unwrap());

fn segments() -> [&'static str; 3] {
    let segments: Vec<&str> = TOKEN.split('.').collect();
    segments.try_into().unwrap()
}

/// C9: the size is judged before anything is read; at the limit the token is taken.
#[test]
fn longer_than_allowed() {
    let rubbish = "x".repeat(101);
    assert_eq!(Compact::parse(&rubbish, 100).unwrap_err(), JoseError::TooLarge { limit: 100 });
    assert_eq!(Compact::parse(&TOKEN, TOKEN.len() - 1).unwrap_err(), JoseError::TooLarge { limit: TOKEN.len() - 1 });
    assert!(KEYS.verify(&Compact::parse(&TOKEN, TOKEN.len()).unwrap()).is_ok());
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
        assert!(matches!(verify(&KEYS, &token), Err(JoseError::Malformed | JoseError::Header)), "{token}");
    }
}

/// C2: one text for each token: padding, whitespace, the other alphabet and unused bits that are not zero are refused
/// in every segment.
#[test]
fn other_spellings_of_the_same_bytes() {
    let original = segments();
    assert_eq!(verify(&KEYS, &TOKEN), Ok(PAYLOAD.to_vec()));
    for place in 0..3 {
        let spell = |text: String| {
            let mut segments = original.map(str::to_owned);
            segments[place] = text;
            verify(&KEYS, &segments.join("."))
        };
        let segment = original[place];
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
            assert!(spell(text.clone()).is_err(), "{text}");
        }
        // The last character of a segment whose length is no multiple of four has unused bits.
        if !segment.len().is_multiple_of(4) {
            const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let last = *segment.as_bytes().last().unwrap();
            let at = ALPHABET.iter().position(|letter| *letter == last).unwrap();
            let text = format!("{}{}", &segment[..segment.len() - 1], char::from(ALPHABET[at + 1]));
            assert!(spell(text).is_err());
        }
    }
    assert!(original.iter().any(|segment| !segment.len().is_multiple_of(4)));
}

/// C2: a signature has exactly the key's length: cut, stretched and DER forms are refused.
#[test]
fn signatures_of_another_length() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::Es512, Algorithm::EdDsa] {
        let signer = key(algorithm, "k");
        let keys = published(&[&signer]);
        let token = signer.sign("at+jwt", PAYLOAD).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let bytes = crate::support::decode(signature);
        let expected = match algorithm {
            Algorithm::Es384 => 96,
            Algorithm::Es512 => 132,
            _ => 64,
        };
        assert_eq!(bytes.len(), expected);
        let zero = vec![0; expected];
        for spoiled in [
            &bytes[1..],
            &bytes[..expected - 1],
            &[&bytes[..], &[0]].concat(),
            &[&[0], &bytes[..]].concat(),
            &[0],
            &vec![0xff; expected],
            &vec![0xff; 5000],
            &zero,
        ] {
            let token = format!("{signed}.{}", crate::support::encode(spoiled));
            assert_eq!(verify(&keys, &token), Err(JoseError::Signature), "{algorithm}");
        }
    }
}

#[test]
fn an_empty_payload_is_a_payload() {
    assert_eq!(verify(&KEYS, &KEY.sign("JWT", b"").unwrap()), Ok(vec![]));
}

proptest! {
    #[test]
    fn any_text_is_judged_without_panic(token in ".{0,200}") {
        let _ = verify(&KEYS, &token);
    }

    #[test]
    fn any_three_segments_are_judged_without_panic(
        header in proptest::collection::vec(any::<u8>(), 0..60),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let token = KEY.dangerous_sign_with_header(&header, &payload).unwrap();
        let _ = verify(&KEYS, &token);
    }

    /// What was signed is what is read.
    #[test]
    fn signed_tokens_read_back(typ in ".{0,20}", kid in ".{0,20}", payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let header = serde_json::json!({ "alg": "Ed25519", "typ": typ, "kid": kid }).to_string();
        let token = KEY.dangerous_sign_with_header(header.as_bytes(), &payload).unwrap();
        let compact = Compact::parse(&token, 4096).unwrap();
        prop_assert_eq!(compact.header().alg(), Algorithm::EdDsa);
        prop_assert_eq!(compact.header().typ(), Some(&*typ));
        prop_assert_eq!(compact.header().kid(), Some(&*kid));
        prop_assert_eq!(compact.unverified_payload(), &*payload);
    }

    /// No change of one character leaves a token that verifies.
    #[test]
    fn one_changed_character_spoils_the_token(at in any::<prop::sample::Index>(), letter in "[ -~]") {
        let at = at.index(TOKEN.len());
        let mut changed = TOKEN.clone();
        changed.replace_range(at..=at, &letter);
        prop_assert_eq!(verify(&KEYS, &changed).is_ok(), changed == *TOKEN);
    }
}
