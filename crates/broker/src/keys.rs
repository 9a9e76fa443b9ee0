//! [`BrokerKeys`]: the keys of the broker.

mod parse;
mod purpose;

use hmac::{Hmac, KeyInit as _, Mac as _};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::JwkSet;
use serde_json::json;
use sha2::Sha256;
use zeroize::Zeroizing;

pub use self::parse::KeysError;
pub(crate) use self::purpose::Purpose;

/// The algorithm of access tokens.
pub(crate) const ALGORITHM: Algorithm = Algorithm::Es256;

/// A secret of 256 bits.
pub(crate) type SecretBytes = Zeroizing<[u8; 32]>;

/// The keys of the broker. Each purpose has separate random keys, and each key has a number, its
/// epoch. The first key of a purpose is in use. The others only open, verify and recognize what was
/// made with them, so that keys are replaced without an interruption.
pub struct BrokerKeys {
    records: Ring,
    forms: Ring,
    refresh_tokens: Ring,
    client_identifiers: Ring,
    signing: Vec<SigningKey>,
}

/// The keys of one purpose, the current one first. There is at least one.
struct Ring(Vec<(u8, SecretBytes)>);

impl BrokerKeys {
    /// Generates keys, in the format of [`parse`](Self::parse).
    ///
    /// # Errors
    /// Fails when the operating system gives no random bytes, or OpenSSL no key.
    pub fn generate() -> Result<Zeroizing<String>, KeysError> {
        parse::generate()
    }

    /// Parses a text with one key in each line: the purpose, the epoch, and the key in base64,
    /// separated by a space. Empty lines and lines that begin with `#` are ignored.
    ///
    /// The purposes are `records`, `forms`, `refresh-tokens` and `client-identifiers`, each with
    /// keys of 32 bytes, and `signing`, with private keys for ES256 in PEM. The epochs are numbers
    /// from 0 to 255 that differ within a purpose.
    ///
    /// # Errors
    /// Fails when a line is malformed, or a purpose has no key or an epoch twice. The error has the
    /// number of the line, and no part of a key.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        parse::parse(text)
    }

    /// Returns the public keys of access tokens.
    pub fn public_keys(&self) -> JwkSet {
        JwkSet::parse(&self.public_jwks()).unwrap_or_default()
    }

    /// Returns the public keys as the JSON document of `jwks_uri` (RFC 7517 section 5).
    pub fn public_jwks(&self) -> Vec<u8> {
        let keys: Vec<_> = self.signing.iter().map(SigningKey::public_jwk).collect();
        json!({ "keys": keys }).to_string().into_bytes()
    }

    /// Returns the key that signs access tokens.
    pub(crate) fn signing(&self) -> Option<&SigningKey> {
        self.signing.first()
    }

    /// Returns the current key of a purpose and its epoch.
    pub(crate) fn current(&self, purpose: Purpose) -> Option<(u8, &SecretBytes)> {
        self.ring(purpose)
            .0
            .first()
            .map(|(epoch, key)| (*epoch, key))
    }

    /// Returns the key of a purpose with this epoch.
    pub(crate) fn of_epoch(&self, purpose: Purpose, epoch: u8) -> Option<&SecretBytes> {
        let mut keys = self.ring(purpose).0.iter();
        keys.find(|(other, _)| *other == epoch).map(|(_, key)| key)
    }

    fn ring(&self, purpose: Purpose) -> &Ring {
        match purpose {
            Purpose::Records => &self.records,
            Purpose::Forms => &self.forms,
            Purpose::RefreshTokens => &self.refresh_tokens,
            Purpose::ClientIdentifiers => &self.client_identifiers,
        }
    }
}

impl std::fmt::Debug for BrokerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerKeys").finish_non_exhaustive()
    }
}

/// Returns the HMAC-SHA-256 of parts, each of which is preceded by its length.
pub(crate) fn authenticator(key: &SecretBytes, parts: &[&[u8]]) -> [u8; 32] {
    keyed(key, parts).finalize().into_bytes().into()
}

/// Returns whether this is the [`authenticator`] of the parts. Takes the same time for every other
/// text of the same length.
pub(crate) fn is_authentic(key: &SecretBytes, parts: &[&[u8]], presented: &[u8]) -> bool {
    keyed(key, parts).verify_slice(presented).is_ok()
}

fn keyed(key: &SecretBytes, parts: &[&[u8]]) -> Hmac<Sha256> {
    // HMAC pads a key to the block of the hash. A block of the right size cannot be rejected.
    let mut block = Zeroizing::new(hmac::digest::Key::<Hmac<Sha256>>::default().0);
    block[..key.len()].copy_from_slice(&**key);
    let mut mac = Hmac::<Sha256>::new(&(*block).into());
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_can_be_parsed_and_are_all_different() {
        let text = BrokerKeys::generate().unwrap();
        let keys = BrokerKeys::parse(&text).unwrap();
        let mut secrets: Vec<[u8; 32]> = Purpose::ALL
            .into_iter()
            .map(|purpose| **keys.current(purpose).unwrap().1)
            .collect();
        secrets.sort_unstable();
        secrets.dedup();
        assert_eq!(secrets.len(), Purpose::ALL.len());
        assert_eq!(keys.public_keys().keys.len(), 1);
        assert_ne!(*BrokerKeys::generate().unwrap(), *text);
    }

    #[test]
    fn a_key_that_was_replaced_is_still_found_by_its_epoch() {
        let old = BrokerKeys::generate().unwrap();
        let new = BrokerKeys::generate().unwrap().replace(" 1 ", " 2 ");
        let keys = BrokerKeys::parse(&format!("{new}\n{}", *old)).unwrap();
        let (epoch, current) = keys.current(Purpose::Records).unwrap();
        assert_eq!(epoch, 2);
        let former = BrokerKeys::parse(&old).unwrap();
        let former = former.current(Purpose::Records).unwrap().1;
        assert_eq!(keys.of_epoch(Purpose::Records, 1), Some(former));
        assert_ne!(current, former);
        assert_eq!(keys.of_epoch(Purpose::Records, 3), None);
        assert_eq!(keys.public_keys().keys.len(), 2);
    }

    #[test]
    fn the_borders_of_parts_count() {
        let key = Zeroizing::new([7; 32]);
        assert_ne!(
            authenticator(&key, &[b"a", b"bc"]),
            authenticator(&key, &[b"ab", b"c"])
        );
        assert_ne!(
            authenticator(&key, &[b"a"]),
            authenticator(&Zeroizing::new([8; 32]), &[b"a"])
        );
    }
}
