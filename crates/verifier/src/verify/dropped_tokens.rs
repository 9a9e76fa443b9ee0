//! Tokens that introspection has found inactive, here or in another process, are dropped from the
//! cache.

use portcullis_metadata::AccessToken;

use super::Verifier;
use crate::inactive_tokens::TokenId;

impl Verifier {
    /// Drops a token that another process has found inactive: it is introspected again at its next
    /// use, and at once if an open stream depends on it. Returns whether this process knows the
    /// token. Has no effect without
    /// [`VerifierSettings::inactive_tokens`](crate::VerifierSettings::inactive_tokens).
    pub fn drop_token(&self, token: TokenId) -> bool {
        let Some(hash) = self.introspected.remove(token) else {
            return false;
        };
        self.cache.remove(hash);
        self.issuers
            .iter()
            .for_each(|issuer| issuer.rechecks().check_now(hash));
        true
    }

    /// Records that a token is about to be introspected: another process can find it inactive from
    /// now on. Returns the number of the introspection, which differs before and after the token
    /// was found inactive.
    pub(super) fn record_introspection(&self, token: &AccessToken) -> u64 {
        if self.settings.inactive_tokens.is_none() {
            return 0;
        }
        let is_watched = |hash| {
            self.issuers
                .iter()
                .any(|issuer| issuer.rechecks().contains(hash))
        };
        let is_needed = |hash| self.cache.contains(hash) || is_watched(hash);
        self.introspected
            .add(TokenId::of(token), self.token_hash(token), is_needed)
    }

    /// Returns whether another process has found a token inactive since the introspection with this
    /// number began here.
    pub(super) fn was_dropped(&self, token: &AccessToken, number: u64) -> bool {
        self.settings.inactive_tokens.is_some()
            && self.introspected.number(TokenId::of(token)) != Some(number)
    }

    /// Drops a token that introspection has found inactive here, and reports it.
    pub(super) fn report_inactive(&self, token: &AccessToken) {
        if let Some(inactive_tokens) = &self.settings.inactive_tokens {
            let id = TokenId::of(token);
            self.introspected.remove(id);
            self.cache.remove(self.token_hash(token));
            inactive_tokens.found(id);
        }
    }
}
