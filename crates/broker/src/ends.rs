//! [`Ends`]: the grants and access tokens that ended before their access tokens expire.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::RwLock;
use portcullis_metadata::UnixTime;
use portcullis_verifier::{RevokedTokens, TrustedIssuer};

/// The grants and access tokens that ended before their access tokens expire, in this process. A
/// guard that verifies tokens of the broker asks it ([`RevokedTokens`]).
#[derive(Default)]
pub struct Ends {
    /// The time until which an access token can be valid, by `sid` or `jti`.
    entries: RwLock<HashMap<Box<str>, UnixTime>>,
    /// The issuer of these tokens, whose verified tokens are cached.
    issuer: RwLock<Weak<TrustedIssuer>>,
}

impl Ends {
    /// Sets the issuer whose cached tokens are verified again after each end.
    pub fn set_issuer(&self, issuer: &Arc<TrustedIssuer>) {
        *self.issuer.write() = Arc::downgrade(issuer);
        issuer.drop_cached_tokens();
    }

    /// Adds the end of a grant (`sid`) or of an access token (`jti`).
    pub fn add(&self, id: &str, until: UnixTime) {
        self.entries.write().insert(id.into(), until);
        // A token that was verified before the line above is not cached after this one.
        if let Some(issuer) = self.issuer.read().upgrade() {
            issuer.drop_cached_tokens();
        }
    }

    /// Returns whether the grant or access token with this identifier ended.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.entries.read().contains_key(id)
    }

    /// Removes the ends whose access tokens have expired. Call it every few seconds.
    pub fn sweep(&self, now: UnixTime) {
        self.entries.write().retain(|_, until| *until > now);
    }
}

impl RevokedTokens for Ends {
    fn is_revoked(&self, sid: Option<&str>, jti: Option<&str>) -> bool {
        let entries = self.entries.read();
        let mut ids = sid.into_iter().chain(jti);
        ids.any(|id| entries.contains_key(id))
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}
