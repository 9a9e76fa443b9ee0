//! Session identifiers: random bytes with a keyed tag.

mod key;
mod keys;
mod rotation;

use std::{
    fmt,
    hash::{Hash as _, Hasher as _},
    ops::Deref,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{ResourceUri, Scopes};

pub(crate) use self::rotation::{Rotation, Rotations};
pub use self::{key::SessionKey, keys::SessionKeys};
use crate::owner::Owner;

const RANDOM: usize = 16;
const TAG: usize = 16;
const BYTES: usize = RANDOM + 1 + TAG;
/// The base64url length of 33 bytes. There is no padding and no spare bit, so each identifier has only one form.
const CHARACTERS: usize = 44;

/// The random part of an identifier: the key of the session table.
pub(crate) type RandomPart = [u8; RANDOM];

/// The bytes of an identifier: random part, key epoch and tag.
#[derive(Clone, Copy)]
pub(crate) struct TaggedId([u8; BYTES]);

/// A session identifier for the client: 44 characters of base64url. `Debug` prints `[redacted]`. Do not log it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identifier([u8; CHARACTERS]);

impl TaggedId {
    /// Returns a new identifier; `None` if the operating system returns no random bytes.
    pub(crate) fn new(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>) -> Option<Self> {
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).ok()?;
        Some(Self::build(key, resource, owner, &random))
    }

    pub(crate) fn build(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, random: &RandomPart) -> Self {
        let mut bytes = [0; BYTES];
        bytes[..RANDOM].copy_from_slice(random);
        bytes[RANDOM] = key.epoch();
        bytes[RANDOM + 1..].copy_from_slice(&tag(key, resource, owner, random).to_le_bytes());
        Self(bytes)
    }

    /// Parses an identifier. The tag is not checked. Allocates nothing.
    pub(crate) fn parse(identifier: &[u8]) -> Option<Self> {
        if identifier.len() != CHARACTERS {
            return None;
        }
        let mut bytes = [0; BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(identifier, &mut bytes).ok()?;
        (length == BYTES).then_some(Self(bytes))
    }

    fn epoch(&self) -> u8 {
        self.0[RANDOM]
    }

    fn tag(&self) -> u128 {
        let mut tag = [0; TAG];
        tag.copy_from_slice(&self.0[RANDOM + 1..]);
        u128::from_le_bytes(tag)
    }

    /// Returns whether all bytes are equal. The tags are compared in constant time.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.random() == other.random() && self.epoch() == other.epoch() && self.tag() == other.tag()
    }

    pub(crate) fn random(&self) -> RandomPart {
        let mut random = [0; RANDOM];
        random.copy_from_slice(&self.0[..RANDOM]);
        random
    }

    pub(crate) fn identifier(&self) -> Identifier {
        let mut text = [b'A'; CHARACTERS];
        // The encoding fits exactly.
        let _ = URL_SAFE_NO_PAD.encode_slice(self.0, &mut text);
        Identifier(text)
    }
}

impl Deref for Identifier {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identifier([redacted])")
    }
}

/// Returns whether one of these keys tagged this identifier for this owner and resource. Allocates nothing.
pub(crate) fn is_issued(keys: &SessionKeys, resource: &ResourceUri, owner: Owner<'_>, id: &TaggedId) -> bool {
    let random = id.random();
    // Comparing two integers takes constant time.
    keys.of_epoch(id.epoch()).any(|key| id.tag() == tag(key, resource, owner, &random))
}

/// Returns a short hash for logs. The identifier cannot be computed from it.
pub(crate) fn log_hash(log_key: &SessionKey, random: &RandomPart) -> u64 {
    (log_key.prf([b"log".as_slice(), random]) >> 64) as u64
}

/// Returns a short hash that distinguishes sets of scopes.
pub(crate) fn scopes_hash(log_key: &SessionKey, scopes: &Scopes) -> u64 {
    let mut hasher = log_key.hasher();
    hasher.write(b"scopes ");
    scopes.hash(&mut hasher);
    hasher.finish()
}

fn tag(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, random: &RandomPart) -> u128 {
    let (resource, owner) = (resource.as_str().as_bytes(), owner.encode());
    let [head, issuer, subject, client] = owner.parts();
    let mut start = [0; RANDOM + 8];
    start[..RANDOM].copy_from_slice(random);
    start[RANDOM..].copy_from_slice(&(resource.len() as u64).to_le_bytes());
    key.prf([&start, resource, head, issuer, subject, client])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALICE: Owner<'_> = Owner::Subject { issuer: "https://a.example", subject: "alice", client: Some("app") };

    fn key() -> SessionKey {
        SessionKey::new(3, *b"0123456789abcdef")
    }

    fn build(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, random: &RandomPart) -> Identifier {
        TaggedId::build(key, resource, owner, random).identifier()
    }

    fn open(key: &SessionKey, resource: &ResourceUri, owner: Owner<'_>, identifier: &[u8]) -> Option<RandomPart> {
        opened(&key.clone().into(), resource, owner, identifier)
    }

    fn opened(keys: &SessionKeys, resource: &ResourceUri, owner: Owner<'_>, identifier: &[u8]) -> Option<RandomPart> {
        let name = TaggedId::parse(identifier)?;
        is_issued(keys, resource, owner, &name).then(|| name.random())
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
        let name = || TaggedId::new(&key(), &resource("https://r.example/mcp"), ALICE).unwrap().random();
        assert_ne!(name(), name());
    }

    /// E3: the tag binds resource, owner, key and epoch. The hash for logs has no bytes of the identifier.
    #[test]
    fn tag_binds_everything() {
        let (random, here) = ([7; 16], resource("https://r.example/mcp"));
        let identifier = build(&key(), &here, ALICE, &random);
        let identifier = identifier.as_bytes();
        assert_eq!(open(&key(), &here, ALICE, identifier), Some(random));

        let elsewhere = resource("https://r.example/mcp2");
        assert_eq!(open(&key(), &elsewhere, ALICE, identifier), None);
        assert_eq!(open(&key(), &here, Owner::Anonymous, identifier), None);
        let other_client = Owner::Subject { issuer: "https://a.example", subject: "alice", client: Some("other") };
        assert_eq!(open(&key(), &here, other_client, identifier), None);
        assert_eq!(open(&SessionKey::new(3, [0; 16]), &here, ALICE, identifier), None);
        assert_eq!(open(&SessionKey::new(4, *b"0123456789abcdef"), &here, ALICE, identifier), None);
        assert_ne!(log_hash(&key(), &random).to_le_bytes(), random[..8]);
    }

    /// E10: an identifier verifies only with the key that its epoch names, at any position of the list.
    #[test]
    fn the_epoch_names_the_key() {
        let here = resource("https://r.example/mcp");
        let (old, new, twin) = (key(), SessionKey::new(4, [4; 16]), SessionKey::new(3, [5; 16]));
        let list = |keys: &[&SessionKey]| SessionKeys::new(keys.iter().map(|key| (*key).clone())).unwrap();
        let identifier = build(&old, &here, ALICE, &[7; 16]);
        let of_alice = |keys: &SessionKeys, identifier: &str| opened(keys, &here, ALICE, identifier.as_bytes());
        for keys in
            [list(&[&old]), list(&[&new, &old]), list(&[&old, &new]), list(&[&twin, &old]), list(&[&old, &twin])]
        {
            assert_eq!(of_alice(&keys, &identifier), Some([7; 16]));
        }
        assert_eq!(of_alice(&list(&[&new, &twin]), &identifier), None);
        // A tag of one key with the epoch of another is not valid.
        let mut bytes = URL_SAFE_NO_PAD.decode(&*identifier).unwrap();
        bytes[RANDOM] = new.epoch();
        assert_eq!(of_alice(&list(&[&new, &old]), &URL_SAFE_NO_PAD.encode(bytes)), None);
    }

    /// E8: different sets of scopes have different hashes. The order of the scopes does not matter.
    #[test]
    fn scopes_hashes_are_distinct() {
        let of = |text| scopes_hash(&key(), &Scopes::parse(text).unwrap());
        assert_eq!(of("a b"), of("b  a b"));
        let different = ["", "a", "b", "ab", "a b", "a b c"].map(of);
        for (position, one) in different.iter().enumerate() {
            assert!(!different[..position].contains(one));
        }
        assert_ne!(of("a"), scopes_hash(&SessionKey::new(3, [0; 16]), &Scopes::parse("a").unwrap()));
    }

    /// E3: `Debug` does not print identifiers.
    #[test]
    fn debug_is_redacted() {
        let identifier = build(&key(), &resource("https://r.example/mcp"), ALICE, &[7; 16]);
        assert_eq!(format!("{identifier:?}"), "Identifier([redacted])");
    }

    proptest! {
        /// E1: arbitrary bytes do not panic and are not issued identifiers.
        #[test]
        fn arbitrary_bytes_are_unknown(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(open(&key(), &resource("https://r.example/mcp"), ALICE, &bytes), None);
        }

        /// E3: an issued identifier verifies, and does not if one character is changed.
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
