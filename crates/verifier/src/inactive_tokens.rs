//! [`InactiveTokens`] and [`IntrospectedTokens`]: tokens that introspection finds inactive, here or
//! in another process.

use std::{
    collections::HashMap,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use portcullis_metadata::AccessToken;
use sha2::{Digest as _, Sha256};

use crate::token_hash::TokenHash;

/// The number of entries below which nothing is removed.
const MIN_TOKENS: usize = 256;

/// Receives the ids of tokens that introspection has found inactive, for example to tell other
/// processes, which then call [`Verifier::drop_token`](crate::Verifier::drop_token). It is set in
/// [`VerifierSettings::inactive_tokens`](crate::VerifierSettings::inactive_tokens).
///
/// It is called on the task of a request or of a check, once for each, and must not block.
pub trait InactiveTokens: fmt::Debug + Send + Sync + 'static {
    /// Called when introspection has found this token inactive. This process may never have
    /// accepted it.
    fn found(&self, token: TokenId);
}

/// The hash by which processes name a token to each other: the first 128 bits of its SHA-256.
///
/// It is not keyed, so that processes need no common key. A guess of the token can be checked with
/// it, so use it only for tokens that are inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenId(pub [u8; 16]);

impl TokenId {
    /// Returns the id of a token. It is the same in every process.
    pub fn of(token: &AccessToken) -> Self {
        let hash: [u8; 32] = Sha256::digest(token.secret()).into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}

/// The number of the last entry of all tables. Verifiers that share an issuer share its calls, so
/// no two entries of their tables may have the same number.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The introspected tokens that are cached, watched, or being introspected, by the ids that other
/// processes use.
///
/// Each entry has a number of its own in this process, so that a token that was found inactive and
/// is introspected again is told apart from its introspection before. Entries that are not needed
/// any more are removed when the table has doubled. So are those of tokens that are being
/// introspected for the first time, which are then not cached.
#[derive(Default)]
pub(crate) struct IntrospectedTokens(Mutex<Table>);

/// The tokens, and when the table is cleaned up.
#[derive(Default)]
struct Table {
    tokens: HashMap<TokenId, Entry>,
    /// The number of entries at which those that are not needed are removed.
    full_at: usize,
}

/// A token that introspection may find inactive.
struct Entry {
    hash: TokenHash,
    number: u64,
}

impl IntrospectedTokens {
    /// Adds a token that is about to be introspected, and returns the number of its entry.
    /// `is_needed` returns whether another token is cached or watched.
    pub(crate) fn add(
        &self,
        token: TokenId,
        hash: TokenHash,
        is_needed: impl Fn(TokenHash) -> bool,
    ) -> u64 {
        let mut table = self.0.lock();
        if table.tokens.len() >= table.full_at.max(MIN_TOKENS) {
            table.tokens.retain(|_, entry| is_needed(entry.hash));
            table.full_at = table.tokens.len() * 2;
        }
        let new = || Entry {
            hash,
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
        };
        table.tokens.entry(token).or_insert_with(new).number
    }

    /// Returns the number of a token's entry, if it was added and not found inactive since.
    pub(crate) fn number(&self, token: TokenId) -> Option<u64> {
        self.0.lock().tokens.get(&token).map(|entry| entry.number)
    }

    /// Removes a token that is inactive, and returns its hash.
    pub(crate) fn remove(&self, token: TokenId) -> Option<TokenHash> {
        self.0.lock().tokens.remove(&token).map(|entry| entry.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> TokenId {
        TokenId::of(&AccessToken::new(number.to_string()))
    }

    /// E13: a token is found by its id until it is inactive, and only tokens that are needed stay.
    #[test]
    fn tokens_are_kept_while_they_are_needed() {
        let tokens = IntrospectedTokens::default();
        for number in 0..10_000 {
            tokens.add(id(number), TokenHash(number.into()), |hash| hash.0 < 100);
        }
        assert!(tokens.0.lock().tokens.len() <= MIN_TOKENS);
        assert!((0..100).all(|number| tokens.number(id(number)).is_some()));
        assert_eq!(tokens.remove(id(7)), Some(TokenHash(7)));
        assert_eq!(tokens.remove(id(7)), None);
        assert_eq!(tokens.number(id(7)), None);
    }

    /// E13: a token that is introspected again after it was inactive has another entry.
    #[test]
    fn another_introspection_has_another_number() {
        let tokens = IntrospectedTokens::default();
        let add = || tokens.add(id(1), TokenHash(1), |_| true);
        let first = add();
        assert_eq!(add(), first);
        assert_eq!(tokens.remove(id(1)), Some(TokenHash(1)));
        assert_ne!(add(), first);
    }

    /// E13: all processes name a token alike.
    #[test]
    fn ids_are_equal_everywhere() {
        assert_eq!(id(1).0[..4], [0x6b, 0x86, 0xb2, 0x73]);
    }
}
