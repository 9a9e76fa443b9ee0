use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::ResourceUri;

use crate::{Owner, SessionKey};

const RANDOM: usize = 16;
const TAG: usize = 16;
const BYTES: usize = RANDOM + 1 + TAG;
/// 33 bytes are 44 characters exactly: no padding, no spare bits, so that each identifier has one form only.
const CHARACTERS: usize = 44;

/// What a session is filed under: the random part of its identifier.
pub(crate) type Random = [u8; RANDOM];

/// A new identifier's random part, or nothing when the operating system has no random bytes.
pub(crate) fn random() -> Option<Random> {
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random).ok().map(|()| random)
}

/// The outward form: base64url of random bytes, key epoch and tag.
pub(crate) fn build(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, random: &Random) -> Box<str> {
    let mut bytes = [0; BYTES];
    bytes[..RANDOM].copy_from_slice(random);
    bytes[RANDOM] = key.epoch();
    bytes[RANDOM + 1..].copy_from_slice(&tag(key, resource, owner, random).to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes).into()
}

/// The random part of an identifier that this key issued to this owner for this resource; nothing for any
/// other bytes. Allocates nothing.
pub(crate) fn open(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, identifier: &[u8]) -> Option<Random> {
    if identifier.len() != CHARACTERS {
        return None;
    }
    let mut bytes = [0; BYTES];
    URL_SAFE_NO_PAD.decode_slice(identifier, &mut bytes).ok().filter(|&length| length == BYTES)?;
    let (random, rest) = bytes.split_first_chunk::<RANDOM>()?;
    let (&epoch, claimed) = rest.split_first()?;
    let claimed = u128::from_le_bytes(claimed.try_into().ok()?);
    // One comparison of two integers: its time tells nothing about where they differ.
    (epoch == key.epoch() && claimed == tag(key, resource, owner, random)).then_some(*random)
}

/// A short hash for logs, from which nothing of the identifier can be computed. What is hashed is shorter than
/// anything that is tagged, so that the two never meet.
pub(crate) fn log_hash(key: &SessionKey, random: &Random) -> u64 {
    (key.prf(&[b"log", random]) >> 64) as u64
}

fn tag(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, random: &Random) -> u128 {
    let (resource, owner) = (resource.as_str().as_bytes(), owner.encode());
    let [head, issuer, subject, client] = owner.parts();
    let mut start = [0; RANDOM + 8];
    start[..RANDOM].copy_from_slice(random);
    start[RANDOM..].copy_from_slice(&(resource.len() as u64).to_le_bytes());
    key.prf(&[&start, resource, head, issuer, subject, client])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALICE: Owner<'_> = Owner::Subject { issuer: "https://a.example", subject: "alice", client: Some("app") };

    fn key() -> SessionKey {
        SessionKey::new(3, *b"0123456789abcdef")
    }

    fn resource(text: &str) -> ResourceUri {
        ResourceUri::parse(text).unwrap()
    }

    /// E1: identifiers are short and visible ASCII.
    #[test]
    fn form_is_44_characters_of_base64url() {
        let identifier = build(&key(), &resource("https://r.example/mcp"), ALICE, &[0xFF; 16]);
        assert_eq!(identifier.len(), CHARACTERS);
        assert!(identifier.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
    }

    /// E3: identifiers carry 128 bits of the system's generator.
    #[test]
    fn random_parts_differ() {
        assert_ne!(random(), random());
        assert!(random().is_some());
    }

    /// E3: the tag binds resource, owner, key and epoch; what is logged is none of its bytes.
    #[test]
    fn tag_binds_everything() {
        let (random, here) = ([7; 16], resource("https://r.example/mcp"));
        let identifier = build(&key(), &here, ALICE, &random);
        let identifier = identifier.as_bytes();
        assert_eq!(open(&key(), &here, ALICE, identifier), Some(random));

        let elsewhere = resource("https://r.example/mcp2");
        assert_eq!(open(&key(), &elsewhere, ALICE, identifier), None);
        assert_eq!(open(&key(), &here, Owner::Nobody, identifier), None);
        let other_client = Owner::Subject { issuer: "https://a.example", subject: "alice", client: Some("other") };
        assert_eq!(open(&key(), &here, other_client, identifier), None);
        assert_eq!(open(&SessionKey::new(3, [0; 16]), &here, ALICE, identifier), None);
        assert_eq!(open(&SessionKey::new(4, *b"0123456789abcdef"), &here, ALICE, identifier), None);
        assert_ne!(log_hash(&key(), &random).to_le_bytes(), random[..8]);
    }

    proptest! {
        /// E1: no bytes panic, and none but an issued identifier are opened.
        #[test]
        fn arbitrary_bytes_are_unknown(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(open(&key(), &resource("https://r.example/mcp"), ALICE, &bytes), None);
        }

        /// E3: what is built opens again, and not with one character changed.
        #[test]
        fn built_identifiers_open(random in any::<[u8; 16]>(), epoch in any::<u8>(), at in 0_usize..44, with in "[A-Za-z0-9_-]") {
            let key = SessionKey::new(epoch, [9; 16]);
            let here = resource("https://r.example/");
            let identifier = build(&key, &here, ALICE, &random);
            prop_assert_eq!(open(&key, &here, ALICE, identifier.as_bytes()), Some(random));
            let mut changed = identifier.as_bytes().to_vec();
            changed[at] = with.as_bytes()[0];
            if changed != identifier.as_bytes() {
                prop_assert_eq!(open(&key, &here, ALICE, &changed), None);
            }
        }
    }
}
