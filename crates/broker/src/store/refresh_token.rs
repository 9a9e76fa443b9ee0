//! [`RefreshToken`]: the format of refresh tokens.
//!
//! A refresh token is the base64url encoding of the epoch of its key (one byte), the identifier of
//! its grant (16 bytes), its generation (8 bytes) and an authenticator (32 bytes). It is not
//! stored: the successor of a token can be made again, byte for byte.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::Secret;
use zeroize::Zeroizing;

use crate::keys::{BrokerKeys, Purpose, authenticator, is_authentic};

const GRANT_ID: usize = 16;
const SIGNED: usize = 1 + GRANT_ID + 8;
const LENGTH: usize = SIGNED + 32;

/// A refresh token that this server made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefreshToken {
    /// The epoch of the key that authenticates it.
    pub(crate) epoch: u8,
    /// The identifier of the grant.
    pub(crate) grant_id: Box<str>,
    /// 0 for the first token of a grant, then one more for each.
    pub(crate) generation: u64,
}

impl RefreshToken {
    /// Parses a token and verifies its authenticator. Returns `None` for every other string.
    pub(crate) fn parse(keys: &BrokerKeys, token: &str) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(token).ok()?);
        let (signed, presented) = bytes.split_at_checked(SIGNED)?;
        let (epoch, rest) = signed.split_first()?;
        let (grant_id, generation) = rest.split_at_checked(GRANT_ID)?;
        let key = keys.of_epoch(Purpose::RefreshTokens, *epoch)?;
        is_authentic(key, &[signed], presented).then_some(())?;
        Some(Self {
            epoch: *epoch,
            grant_id: URL_SAFE_NO_PAD.encode(grant_id).into(),
            generation: u64::from_be_bytes(generation.try_into().ok()?),
        })
    }

    /// Returns the text of the token. `None` if the key of its epoch is not known any more, or the
    /// grant has another kind of identifier.
    pub(crate) fn to_secret(&self, keys: &BrokerKeys) -> Option<Secret> {
        let key = keys.of_epoch(Purpose::RefreshTokens, self.epoch)?;
        let grant_id = URL_SAFE_NO_PAD.decode(&*self.grant_id).ok()?;
        (grant_id.len() == GRANT_ID).then_some(())?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(LENGTH));
        bytes.push(self.epoch);
        bytes.extend_from_slice(&grant_id);
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        let authenticator = authenticator(key, &[&bytes]);
        bytes.extend_from_slice(&authenticator);
        Some(Secret::new(URL_SAFE_NO_PAD.encode(&*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use portcullis_authorization_server::random_secret;

    use super::*;

    fn keys() -> BrokerKeys {
        BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap()
    }

    fn token() -> RefreshToken {
        RefreshToken {
            epoch: 1,
            grant_id: random_secret(GRANT_ID).unwrap().secret().into(),
            generation: 7,
        }
    }

    #[test]
    fn the_text_of_a_token_is_the_same_each_time() {
        let keys = keys();
        let token = token();
        let text = token.to_secret(&keys).unwrap();
        assert!(text == token.to_secret(&keys).unwrap());
        assert_eq!(RefreshToken::parse(&keys, text.secret()), Some(token));
    }

    /// RF5: a forged token is unknown.
    #[test]
    fn a_token_that_was_changed_is_unknown() {
        let keys = keys();
        let text = token().to_secret(&keys).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(text.secret()).unwrap();
        assert_eq!(bytes.len(), LENGTH);
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(RefreshToken::parse(&keys, &changed), None, "{position}");
        }
        assert_eq!(RefreshToken::parse(&self::keys(), text.secret()), None);
        for other in ["", "a", "!", &text.secret()[1..]] {
            assert_eq!(RefreshToken::parse(&keys, other), None, "{other:?}");
        }
    }
}
