//! Tests of identifiers: their content, and the detection of changes.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{ResourceUri, UnixTime};
use proptest::prelude::*;

use super::{sealed::MAX_CHARACTERS, *};
use crate::owner::Owner;

const ALICE: Owner<'_> = Owner::Subject {
    issuer: "https://a.example",
    subject: "alice",
    client: Some("app"),
};

fn key() -> SessionKey {
    SessionKey::new(3, b"0123456789abcdef0123456789abcdef")
}

fn here() -> ResourceUri {
    ResourceUri::parse("https://r.example/mcp").unwrap()
}

fn data(owner: Owner<'_>) -> AssociatedData {
    AssociatedData::new(&here(), owner)
}

/// A record with arbitrary values.
fn record() -> Record {
    Record {
        session: [7; 16],
        generation: 0,
        created: UnixTime::from_secs(1_800_000_000),
        upstream: 1,
        fingerprint: 2,
        version: Version::new("2025-11-25"),
        backend_id: Some(Box::from(*b"11111111-2222-3333-4444-555555555555")),
    }
}

fn sealed() -> Identifier {
    seal(&key(), &data(ALICE), &[7; 16], &record()).unwrap()
}

fn opened(owner: Owner<'_>, identifier: &str) -> Option<Record> {
    open(&key(), &data(owner), identifier.as_bytes())
}

/// E1: identifiers are short, and only visible ASCII.
#[test]
fn form_is_base64url() {
    let identifier = sealed();
    assert_eq!(identifier.len(), 166);
    assert!(
        identifier
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    );
    assert_eq!(
        head(identifier.as_bytes()),
        Some(Head {
            epoch: 3,
            random: [7; 16]
        })
    );
}

/// E12: an identifier opens only with its resource, owner, key and epoch.
#[test]
fn the_seal_binds_everything() {
    let identifier = sealed();
    assert_eq!(opened(ALICE, &identifier), Some(record()));
    assert_eq!(opened(Owner::Anonymous, &identifier), None);
    let other_client = Owner::Subject {
        issuer: "https://a.example",
        subject: "alice",
        client: Some("other"),
    };
    assert_eq!(opened(other_client, &identifier), None);
    let elsewhere = ResourceUri::parse("https://r.example/mcp2").unwrap();
    assert_eq!(
        open(
            &key(),
            &AssociatedData::new(&elsewhere, ALICE),
            identifier.as_bytes()
        ),
        None
    );
    for other in [
        SessionKey::new(3, &[0; 32]),
        SessionKey::new(4, b"0123456789abcdef0123456789abcdef"),
    ] {
        assert_eq!(open(&other, &data(ALICE), identifier.as_bytes()), None);
    }
}

/// E12: the longest backend identifier fits in 512 characters together with the longest version. A
/// longer one does not.
#[test]
fn identifiers_are_bounded() {
    let with = |length| Record {
        backend_id: Some(vec![0xFF; length].into()),
        version: Version::new("123456789012345"),
        ..record()
    };
    let sealed = |length| seal(&key(), &data(ALICE), &[7; 16], &with(length));
    let longest = sealed(MAX_BACKEND_ID).unwrap();
    assert_eq!(longest.len(), MAX_CHARACTERS);
    assert_eq!(opened(ALICE, &longest), Some(with(MAX_BACKEND_ID)));
    assert_eq!(sealed(MAX_BACKEND_ID + 1), None);
    assert_eq!(head(format!("{}A", &*longest).as_bytes()), None);
}

/// E8, E12: all processes make the same successor. With a difference in any part, the successor is
/// another one.
#[test]
fn successors_are_deterministic_and_distinct() {
    let next = Record {
        generation: 1,
        fingerprint: 3,
        ..record()
    };
    let successor = |owner, predecessor, record: &Record| {
        successor_random(&key(), &data(owner), predecessor, record)
    };
    let random = successor(ALICE, &[7; 16], &next);
    assert_eq!(successor(ALICE, &[7; 16], &next), random);

    let identifier = seal(&key(), &data(ALICE), &random, &next).unwrap();
    assert_eq!(head(identifier.as_bytes()), Some(Head { epoch: 3, random }));
    assert_eq!(opened(ALICE, &identifier), Some(next.clone()));
    let others = [
        successor(Owner::Anonymous, &[7; 16], &next),
        successor(ALICE, &[8; 16], &next),
        successor(
            ALICE,
            &[7; 16],
            &Record {
                generation: 2,
                ..next.clone()
            },
        ),
        successor(
            ALICE,
            &[7; 16],
            &Record {
                fingerprint: 4,
                ..next.clone()
            },
        ),
        successor(
            ALICE,
            &[7; 16],
            &Record {
                backend_id: None,
                ..next.clone()
            },
        ),
    ];
    for other in others {
        assert_ne!(other, random, "two records with one nonce");
    }
}

/// E12: parts of two identifiers never form a third one.
#[test]
fn spliced_identifiers_do_not_open() {
    let bytes = |identifier: &Identifier| URL_SAFE_NO_PAD.decode(&**identifier).unwrap();
    let one = bytes(&sealed());
    let other = {
        let record = Record {
            session: [9; 16],
            ..record()
        };
        bytes(&seal(&key(), &data(ALICE), &[9; 16], &record).unwrap())
    };
    for at in 1..one.len() {
        let spliced = [&one[..at], &other[at..]].concat();
        if spliced != one && spliced != other {
            assert_eq!(
                opened(ALICE, &URL_SAFE_NO_PAD.encode(spliced)),
                None,
                "at {at}"
            );
        }
    }
}

/// E8: different sets of scopes have different fingerprints. The order of the scopes does not
/// matter.
#[test]
fn fingerprints_are_distinct() {
    let of = |text| key().scopes_fingerprint(&Scopes::parse(text).unwrap());
    assert_eq!(of("a b"), of("b  a b"));
    let different = ["", "a", "b", "ab", "a b", "a b c"].map(of);
    for (position, one) in different.iter().enumerate() {
        assert!(!different[..position].contains(one));
    }
    assert_ne!(
        of("a"),
        SessionKey::new(3, &[0; 32]).scopes_fingerprint(&Scopes::parse("a").unwrap())
    );
    assert_ne!(
        key().upstream_hash("http://a"),
        key().upstream_hash("http://b")
    );
}

/// E3: `Debug` does not print identifiers, and the hash for logs has no bytes of one.
#[test]
fn debug_is_redacted() {
    assert_eq!(format!("{:?}", sealed()), "Identifier([redacted])");
    assert_ne!(key().log_hash(&[7; 16]).to_le_bytes(), [7; 8]);
}

proptest! {
    /// E1: arbitrary bytes do not panic and are not issued identifiers.
    #[test]
    fn arbitrary_bytes_are_unknown(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = head(&bytes);
        prop_assert_eq!(open(&key(), &data(ALICE), &bytes), None);
    }

    /// E3, E12: an identifier does not open if a character is changed, or if it is truncated or
    /// extended.
    #[test]
    fn changed_identifiers_do_not_open(at in 0_usize..166, with in "[A-Za-z0-9_-]", more in "[A-Za-z0-9_=-]{1,8}") {
        let identifier = sealed();
        let mut changed = identifier.as_bytes().to_vec();
        changed[at] = with.as_bytes()[0];
        if changed != identifier.as_bytes() {
            prop_assert_eq!(open(&key(), &data(ALICE), &changed), None);
        }
        prop_assert_eq!(opened(ALICE, &identifier[..at]), None);
        prop_assert_eq!(opened(ALICE, &format!("{}{more}", &*identifier)), None);
    }
}
