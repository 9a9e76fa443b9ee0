//! The format of the file of keys.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_authorization_server::random_bytes;
use portcullis_jose::SigningKey;
use zeroize::Zeroizing;

use super::{ALGORITHM, BrokerKeys, Purpose, Ring, SecretBytes};

/// The purpose of a key that signs access tokens.
const SIGNING: &str = "signing";
/// The epoch of generated keys.
const FIRST_EPOCH: u8 = 1;
/// A bound for the work of one start: each signing key is imported.
const MAX_KEYS: usize = 16;

/// Why the keys of the broker cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A line is not a purpose, an epoch and a key.
    #[error("line {line} is not a purpose, an epoch from 0 to 255 and a key in base64")]
    Line {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A key has another size or format than its purpose needs.
    #[error(
        "line {line} does not have a key for its purpose: 32 bytes, or a private key for ES256 in PEM"
    )]
    Key {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A purpose has two keys with the same epoch.
    #[error("line {line} repeats an epoch of its purpose")]
    Epoch {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A purpose has too many keys.
    #[error("line {line} is the 17th key of its purpose; remove old ones")]
    TooMany {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A purpose has no key.
    #[error("there is no key for {0}")]
    Missing(&'static str),
    /// There are no random bytes, or OpenSSL generates no key.
    #[error("a key cannot be generated")]
    Generation,
}

pub(super) fn generate() -> Result<Zeroizing<String>, KeysError> {
    let pem = SigningKey::generate_pem(ALGORITHM).map_err(|_| KeysError::Generation)?;
    // Reserved at once, because a string that grows leaves copies of secrets behind.
    let mut text = Zeroizing::new(String::with_capacity(2048));
    text.push_str(
        "# The first key of each purpose is in use. The others only open what was made with them.\n",
    );
    for purpose in Purpose::ALL {
        let secret: SecretBytes =
            Zeroizing::new(random_bytes().map_err(|_| KeysError::Generation)?);
        push_line(&mut text, purpose.as_str(), &*secret)?;
    }
    push_line(&mut text, SIGNING, pem.as_bytes())?;
    Ok(text)
}

fn push_line(text: &mut String, purpose: &str, key: &[u8]) -> Result<(), KeysError> {
    let encoded = Zeroizing::new(STANDARD.encode(key));
    writeln!(text, "{purpose} {FIRST_EPOCH} {}", *encoded).map_err(|_| KeysError::Generation)
}

pub(super) fn parse(text: &str) -> Result<BrokerKeys, KeysError> {
    let mut rings = Purpose::ALL.map(|purpose| (purpose, Vec::new()));
    let mut signing: Vec<(u8, SigningKey)> = Vec::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (line, content) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let entry = Entry::parse(content).ok_or(KeysError::Line { line })?;
        let invalid = KeysError::Key { line };
        if entry.purpose == SIGNING {
            let pem = std::str::from_utf8(&entry.key).map_err(|_| invalid.clone())?;
            let key = SigningKey::from_pem_with_thumbprint(ALGORITHM, pem).map_err(|_| invalid)?;
            push(&mut signing, entry.epoch, key, line)?;
        } else {
            let (_, ring) = rings
                .iter_mut()
                .find(|(purpose, _)| purpose.as_str() == entry.purpose)
                .ok_or(KeysError::Line { line })?;
            let mut key = SecretBytes::default();
            if entry.key.len() != key.len() {
                return Err(invalid);
            }
            key.copy_from_slice(&entry.key);
            push(ring, entry.epoch, key, line)?;
        }
    }
    let missing = rings.iter().find(|(_, ring)| ring.is_empty());
    if let Some((purpose, _)) = missing {
        return Err(KeysError::Missing(purpose.as_str()));
    }
    if signing.is_empty() {
        return Err(KeysError::Missing(SIGNING));
    }
    let [records, forms, refresh_tokens, client_identifiers] = rings.map(|(_, ring)| Ring(ring));
    Ok(BrokerKeys {
        records,
        forms,
        refresh_tokens,
        client_identifiers,
        signing: signing.into_iter().map(|(_, key)| key).collect(),
    })
}

fn push<K>(ring: &mut Vec<(u8, K)>, epoch: u8, key: K, line: usize) -> Result<(), KeysError> {
    if ring.iter().any(|(other, _)| *other == epoch) {
        return Err(KeysError::Epoch { line });
    }
    if ring.len() == MAX_KEYS {
        return Err(KeysError::TooMany { line });
    }
    ring.push((epoch, key));
    Ok(())
}

struct Entry<'a> {
    purpose: &'a str,
    epoch: u8,
    key: Zeroizing<Vec<u8>>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (purpose, epoch, key) = (words.next()?, words.next()?, words.next()?);
        words.next().is_none().then_some(())?;
        Some(Self {
            purpose,
            epoch: epoch.parse().ok()?,
            key: Zeroizing::new(STANDARD.decode(key).ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error names the line and has no part of a key.
    #[test]
    fn malformed_keys_are_refused() {
        let text = generate().unwrap();
        let last = text.lines().count();
        let with = |line: &str| parse(&format!("{}{line}\n", *text)).unwrap_err();
        let line = last + 1;
        let valid = STANDARD.encode([1; 32]);
        assert_eq!(with("records"), KeysError::Line { line });
        assert_eq!(with("records 256 AAAA"), KeysError::Line { line });
        assert_eq!(with("records 2 !"), KeysError::Line { line });
        assert_eq!(
            with(&format!("records 2 {valid} more")),
            KeysError::Line { line }
        );
        assert_eq!(with(&format!("other 2 {valid}")), KeysError::Line { line });
        assert_eq!(with("records 2 AAAA"), KeysError::Key { line });
        assert_eq!(with(&format!("signing 2 {valid}")), KeysError::Key { line });
        assert_eq!(
            with(&format!("records 1 {valid}")),
            KeysError::Epoch { line }
        );
        assert!(parse(&format!("{}\n# comment\n\nrecords 2 {valid}", *text)).is_ok());
    }

    #[test]
    fn every_purpose_needs_a_key() {
        let text = generate().unwrap();
        for purpose in Purpose::ALL
            .map(Purpose::as_str)
            .into_iter()
            .chain([SIGNING])
        {
            let lines = text.lines().filter(|line| !line.starts_with(purpose));
            let without = lines.collect::<Vec<_>>().join("\n");
            assert_eq!(parse(&without).unwrap_err(), KeysError::Missing(purpose));
        }
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let key = STANDARD.encode([1; 32]);
        let lines: Vec<_> = (2..=17)
            .map(|epoch| format!("forms {epoch} {key}"))
            .collect();
        let text = format!("{}{}", *generate().unwrap(), lines.join("\n"));
        let line = text.lines().count();
        assert_eq!(parse(&text).unwrap_err(), KeysError::TooMany { line });
    }
}
