use std::{fmt, hash::Hasher, sync::Arc};

use hmac::{
    Hmac, KeyInit as _, Mac as _,
    digest::{Key, Output},
};
use sha2::Sha256;
use siphasher::sip::{SipHasher13, SipHasher24};
use zeroize::Zeroizing;

use crate::error::KeyError;

/// The minimum length of a secret that a key is derived from, in bytes.
const MIN_SECRET: usize = 32;

/// The salt of all derivations.
const SALT: &[u8; 32] = b"portcullis session keys, form 1.";

/// A secret key that seals identifiers. Processes with the same key can continue each other's
/// sessions. Clones share the secret. `Debug` does not print it.
///
/// Subkeys are derived from the secret with HKDF-SHA256 (RFC 5869), one for each purpose: to seal
/// identifiers, to derive later identifiers, to compare sets of scopes and upstreams, to compare
/// the text of identifiers, to hash session ids for logs, and to hash the names under which
/// replicas count requests. The secret is not kept.
///
/// The subkeys are wiped from memory when the last clone is dropped. Copies that the hash functions
/// make while they use a subkey are not wiped, and neither is
/// [`SessionKeys::limit_key`](super::SessionKeys::limit_key).
#[derive(Clone)]
pub struct SessionKey(Arc<Subkeys>);

struct Subkeys {
    /// Derived, too, unless it is given. It is public: it begins every identifier.
    epoch: u8,
    sealing: Subkey,
    derivation: Subkey,
    fingerprint: Subkey,
    text: Subkey,
    log: Subkey,
    limits: Subkey,
}

/// A key for one purpose. It is wiped when it is dropped.
pub(super) type Subkey = Zeroizing<[u8; 32]>;

impl SessionKey {
    /// Returns a random key with epoch 0.
    ///
    /// # Errors
    /// Fails if the operating system returns no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self::new(0, &secret))
    }

    /// Returns a key with this secret. `epoch` is readable in every identifier and selects the keys
    /// that are tried for it. Use a new epoch for each new key; with the same one, each identifier
    /// is tried with each of these keys.
    ///
    /// The caller must ensure that the secret is random.
    pub fn new(epoch: u8, secret: &[u8; 32]) -> Self {
        Self::with_extracted(Some(epoch), &hmac(SALT, [secret.as_slice()]))
    }

    /// Derives a key from a secret of any form, such as the output of `openssl rand -base64 32`.
    /// Key and epoch depend only on the secret. The epoch is one byte, so that one of 256 pairs of
    /// keys has the same one, which costs time (see [`new`](Self::new)) and nothing else.
    ///
    /// The caller must ensure that the secret is random.
    ///
    /// # Errors
    /// Fails if the secret is shorter than 32 bytes.
    pub fn derive(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET {
            return Err(KeyError::TooShort);
        }
        Ok(Self::with_extracted(None, &hmac(SALT, [secret])))
    }

    /// Returns the number that identifies this key in identifiers.
    pub fn epoch(&self) -> u8 {
        self.0.epoch
    }

    /// Returns the key with this pseudorandom key of HKDF. Without `epoch`, the epoch is derived,
    /// too.
    fn with_extracted(epoch: Option<u8>, extracted: &Subkey) -> Self {
        let expand = |purpose: &[u8]| hmac(extracted, [purpose, &[1]]);
        Self(Arc::new(Subkeys {
            epoch: epoch.unwrap_or_else(|| expand(b"epoch")[0]),
            sealing: expand(b"sealing"),
            derivation: expand(b"derivation"),
            fingerprint: expand(b"fingerprint"),
            text: expand(b"text"),
            log: expand(b"log hash"),
            limits: expand(b"limits"),
        }))
    }

    /// Returns the key that encrypts and authenticates.
    pub(super) fn sealing(&self) -> &[u8; 32] {
        &self.0.sealing
    }

    /// Derives the random part of a later identifier: a PRF of the concatenated parts.
    pub(super) fn derive_bytes<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Zeroizing<[u8; 32]> {
        hmac(&self.0.derivation, parts)
    }

    /// Returns the PRF for sets of scopes and upstreams. Equal hashes of different ones grant no
    /// access, because each request is authorized by its token: an identifier is then not replaced
    /// after a step-up, or a session continues although its upstream has changed.
    pub(super) fn fingerprint_hasher(&self) -> SipHasher24 {
        sip24(&self.0.fingerprint)
    }

    /// Returns the PRF for the text of identifiers that were opened before. It has fewer rounds
    /// than the others, because it is computed for each request. The hashes stay in the memory of
    /// this process.
    pub(super) fn text_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&half(&self.0.text))
    }

    /// Returns the key of the hashes by which replicas count requests.
    pub(super) fn limits(&self) -> [u8; 16] {
        *half(&self.0.limits)
    }

    /// Returns the PRF for the hashes of sessions in logs.
    pub(super) fn log_hasher(&self) -> SipHasher24 {
        sip24(&self.0.log)
    }

    /// Returns whether both keys have the same secret. The comparison need not take constant time:
    /// both keys are the operator's, and no part of them comes from a request.
    pub(crate) fn same_secret(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0.sealing == *other.0.sealing
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKey")
            .field("epoch", &self.0.epoch)
            .finish_non_exhaustive()
    }
}

/// Computes HMAC-SHA256 over the concatenated parts.
///
/// With the salt as the key, this is HKDF-Extract. With the pseudorandom key as the key, and `[1]`
/// as the last part, it is HKDF-Expand for up to 32 bytes (RFC 5869 section 2). The `hkdf` crate
/// would save nothing: later identifiers need a plain HMAC of parts, and one block of HKDF is one
/// such HMAC.
fn hmac<'a>(key: &[u8; 32], parts: impl IntoIterator<Item = &'a [u8]>) -> Zeroizing<[u8; 32]> {
    // Padded to the block, as HMAC does with a short key (RFC 2104 section 2): the constructor that
    // pads returns a `Result`.
    let mut block = Zeroizing::new(Key::<Hmac<Sha256>>::default().0);
    block[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&(*block).into());
    for part in parts {
        mac.update(part);
    }
    let output: Output<Hmac<Sha256>> = mac.finalize().into_bytes();
    Zeroizing::new(output.0)
}

/// Returns SipHash-2-4 with the first half of a subkey.
fn sip24(subkey: &Subkey) -> SipHasher24 {
    SipHasher24::new_with_key(&half(subkey))
}

/// Returns the first 16 bytes of a subkey, which is the length of a SipHash key.
fn half(subkey: &Subkey) -> Zeroizing<[u8; 16]> {
    let mut half = Zeroizing::new([0; 16]);
    half.copy_from_slice(&subkey[..16]);
    half
}

/// Returns the hash over the concatenated parts.
pub(super) fn finish<'a>(
    mut hasher: impl Hasher,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> u64 {
    for part in parts {
        hasher.write(part);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E3: `Debug` does not print the key.
    #[test]
    fn debug_is_redacted() {
        let shown = format!("{:?}", SessionKey::new(7, &[0xAB; 32]));
        assert_eq!(shown, "SessionKey { epoch: 7, .. }");
    }

    /// RFC 4231 section 4.3, with a key that is shorter than 32 bytes and therefore padded.
    #[test]
    fn hmac_is_that_of_the_rfc() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let expected = [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e];
        assert_eq!(
            hmac(&key, [b"what do ya want ".as_slice(), b"for nothing?"])[..8],
            expected
        );
    }

    /// E12: subkeys are those of HKDF-SHA256 (RFC 5869 appendix A.1), of which one block is used.
    #[test]
    fn subkeys_are_those_of_hkdf() {
        let mut salt = [0; 32];
        salt[..13].copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let extracted = hmac(&salt, [[0x0b_u8; 22].as_slice()]);
        assert_eq!(
            extracted[..8],
            [0x07, 0x77, 0x09, 0x36, 0x2c, 0x2e, 0x32, 0xdf]
        );
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let expanded = hmac(&extracted, [info.as_slice(), &[1]]);
        assert_eq!(
            expanded[..8],
            [0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a]
        );
    }

    /// E12: each purpose has a subkey of its own.
    #[test]
    fn subkeys_differ() {
        let key = SessionKey::new(0, &[1; 32]);
        // Without `..`: a new subkey does not compile until it is compared.
        let Subkeys {
            epoch: _,
            sealing,
            derivation,
            fingerprint,
            text,
            log,
            limits,
        } = &*key.0;
        let subkeys = [sealing, derivation, fingerprint, text, log, limits];
        for (position, one) in subkeys.iter().enumerate() {
            assert!(
                subkeys[..position]
                    .iter()
                    .all(|other| other[..16] != one[..16])
            );
        }
    }

    #[test]
    fn random_keys_differ() {
        assert!(
            !SessionKey::random()
                .unwrap()
                .same_secret(&SessionKey::random().unwrap())
        );
        assert!(!SessionKey::new(1, &[1; 32]).same_secret(&SessionKey::new(1, &[2; 32])));
        assert!(SessionKey::new(1, &[1; 32]).same_secret(&SessionKey::new(2, &[1; 32])));
    }

    /// The starts of the subkeys whose results other processes compare: of all but `text`.
    fn starts_of_shared_subkeys(key: &SessionKey) -> [[u8; 4]; 5] {
        let Subkeys {
            sealing,
            derivation,
            fingerprint,
            log,
            limits,
            ..
        } = &*key.0;
        [sealing, derivation, fingerprint, log, limits].map(|subkey| *subkey.first_chunk().unwrap())
    }

    /// E12: a key of 32 bytes always has the same subkeys.
    #[test]
    fn keys_of_bytes_follow_from_their_secret() {
        let key = SessionKey::new(7, &[1; 32]);
        let starts = [
            [216, 38, 216, 250],
            [103, 114, 108, 104],
            [227, 81, 197, 94],
            [150, 52, 155, 121],
            [26, 162, 187, 232],
        ];
        assert_eq!((key.epoch(), starts_of_shared_subkeys(&key)), (7, starts));
    }

    /// E10, E12: the same secret gives the same key and epoch. A short secret is rejected.
    #[test]
    fn derived_keys_follow_from_their_secret() {
        let secret = b"0123456789abcdef0123456789abcdef";
        let one = SessionKey::derive(secret).unwrap();
        let other = SessionKey::derive(secret).unwrap();
        assert!(one.same_secret(&other));
        assert!(one.epoch() == other.epoch());

        // The identifiers of other versions and replicas must remain valid.
        assert_eq!(one.epoch(), 239);
        let starts = [
            [37, 1, 113, 223],
            [106, 53, 94, 155],
            [235, 105, 152, 32],
            [116, 68, 43, 126],
            [204, 150, 142, 218],
        ];
        assert_eq!(starts_of_shared_subkeys(&one), starts);
        let longer = SessionKey::derive(b"0123456789abcdef0123456789abcdef0").unwrap();
        assert!(!one.same_secret(&longer));
        assert_eq!(
            SessionKey::derive(&secret[1..]).unwrap_err(),
            KeyError::TooShort
        );
        assert_eq!(SessionKey::derive(b"").unwrap_err(), KeyError::TooShort);

        let epochs: std::collections::BTreeSet<_> = (0..16_u8)
            .map(|last| {
                SessionKey::derive(&[[b'x'; 31].as_slice(), &[last]].concat())
                    .unwrap()
                    .epoch()
            })
            .collect();
        assert!(epochs.len() > 8, "epochs follow from the secrets");
    }
}
