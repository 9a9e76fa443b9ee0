//! [`Ends`]: the grants and access tokens that ended before their access tokens expire.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use portcullis_metadata::UnixTime;
use portcullis_verifier::{RevokedTokens, TrustedIssuer};

/// By how many ends the table grows at least.
const MIN_GROWTH: usize = 64;

/// The grants and access tokens that ended before their access tokens expire, in this process. A
/// guard that verifies tokens of the broker asks it ([`RevokedTokens`]).
#[derive(Default)]
pub struct Ends {
    /// The time until which an access token can be valid, by `sid` or `jti`.
    entries: RwLock<HashMap<Box<str>, UnixTime>>,
    /// The issuer of these tokens, whose verified tokens are cached.
    issuer: RwLock<Weak<TrustedIssuer>>,
    /// Whether ends of other processes may be missing, because they were never read.
    is_incomplete: AtomicBool,
    /// When the ends of other processes were read the last time.
    read: Mutex<Option<UnixTime>>,
}

impl Ends {
    /// Returns a table for a process that may start before it can read the ends of others. No token
    /// is verified until [`Broker::load_ends`](crate::Broker::load_ends) or
    /// [`Broker::refresh_ends`](crate::Broker::refresh_ends) has read them.
    pub fn incomplete() -> Self {
        Self {
            is_incomplete: AtomicBool::new(true),
            ..Self::default()
        }
    }

    /// Sets the issuer whose cached tokens are verified again after each end.
    pub fn set_issuer(&self, issuer: &Arc<TrustedIssuer>) {
        *self.issuer.write() = Arc::downgrade(issuer);
        issuer.drop_cached_tokens();
    }

    /// Adds the end of a grant (`sid`) or of an access token (`jti`). Before the table grows, it
    /// removes the ends whose access tokens have expired.
    pub fn add(&self, id: &str, until: UnixTime, now: UnixTime) {
        let mut entries = self.entries.write();
        if entries.len() == entries.capacity() {
            entries.retain(|_, until| *until > now);
            // The next sweep comes after as many additions, so that each costs little.
            let remaining = entries.len();
            entries.reserve(remaining.max(MIN_GROWTH));
        }
        entries.insert(id.into(), until);
        drop(entries);
        // A token that was verified before the line above is not cached after this one.
        if let Some(issuer) = self.issuer.read().upgrade() {
            issuer.drop_cached_tokens();
        }
    }

    /// Returns when the ends of other processes were read the last time.
    pub(crate) fn last_read(&self) -> Option<UnixTime> {
        *self.read.lock()
    }

    /// Records that all ends are known that were stored before this time.
    pub(crate) fn set_read(&self, at: UnixTime) {
        *self.read.lock() = Some(at);
        self.is_incomplete.store(false, Ordering::Release);
    }

    /// Returns whether the grant or access token with this identifier ended.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.entries.read().contains_key(id)
    }
}

impl RevokedTokens for Ends {
    fn is_revoked(&self, sid: Option<&str>, jti: Option<&str>) -> bool {
        let entries = self.entries.read();
        let mut ids = sid.into_iter().chain(jti);
        ids.any(|id| entries.contains_key(id))
    }

    fn is_complete(&self) -> bool {
        !self.is_incomplete.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TK5: ends do not fill the memory, and each lasts as long as the access tokens.
    #[test]
    fn ends_are_removed_when_their_tokens_have_expired() {
        let ends = Ends::default();
        for second in 0..10_000 {
            let now = UnixTime::from_secs(second);
            ends.add(&second.to_string(), UnixTime::from_secs(second + 100), now);
            assert!(ends.contains(&second.saturating_sub(99).to_string()));
            assert!(ends.entries.read().len() <= 500);
        }
    }
}
