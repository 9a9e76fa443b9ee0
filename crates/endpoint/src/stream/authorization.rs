//! The authorization of an open event stream: the token by which it is open, and how long that
//! token is valid.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_guard::Caller;
use portcullis_metadata::{Scopes, UnixTime};
use portcullis_verifier::{HeldToken, Principal, RecheckFailure, VerifiedToken, WatchedToken};

use super::{StreamEndReason, millis};

/// The validity of a token without an expiry, and of a stream without a token.
const NO_EXPIRY: u64 = u64::MAX;

/// The token that opened a stream, and the one that authorizes it now.
pub(super) struct StreamAuthorization {
    /// The token that opened the stream; `None` if authentication is off. Later tokens must have
    /// its scopes.
    opened_by: Option<VerifiedToken>,
    /// The end of the validity of the current token, in milliseconds of Unix time.
    valid_until: AtomicU64,
    /// For how long the stream continues after the current token has expired, in milliseconds.
    grace: u64,
    /// The current token, if it is introspected.
    watched: Mutex<Option<Arc<WatchedToken>>>,
}

impl StreamAuthorization {
    /// Returns the authorization by the caller's token, which is watched from now on if it is
    /// introspected. The stream continues for `grace` after the token has expired.
    pub(super) fn new(caller: &Caller, grace: Duration) -> Self {
        let opened_by = caller.verified();
        let watched = caller.held_token().and_then(HeldToken::watch);
        let valid_until =
            opened_by.map_or(NO_EXPIRY, |verified| validity(verified, watched.is_some()));
        Self {
            opened_by: opened_by.cloned(),
            valid_until: AtomicU64::new(valid_until),
            grace: millis(grace),
            watched: Mutex::new(watched),
        }
    }

    /// Returns the principal of the token that opened the stream.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.opened_by.as_ref().map(VerifiedToken::principal)
    }

    /// Returns the end of the validity of the current token, in milliseconds of Unix time.
    pub(super) fn valid_until(&self) -> u64 {
        self.valid_until.load(Ordering::Relaxed)
    }

    /// Returns whether the current token has expired, and the grace is over.
    pub(super) fn has_expired(&self, now: UnixTime) -> bool {
        now.as_millis() >= self.valid_until().saturating_add(self.grace)
    }

    /// Returns whether these scopes include those of the token that opened the stream.
    pub(super) fn is_covered_by(&self, scopes: &Scopes) -> bool {
        self.principal()
            .is_none_or(|principal| scopes.covers(principal.scopes()))
    }

    /// Replaces the current token.
    pub(super) fn replace(&self, valid_until: u64, watched: Option<Arc<WatchedToken>>) {
        let mut current = self.watched.lock();
        let previous = std::mem::replace(&mut *current, watched);
        self.valid_until.store(valid_until, Ordering::Relaxed);
        // The last owner of a watched token wipes it, outside the lock.
        drop(current);
        drop(previous);
    }

    /// Applies the result of the last introspection of the current token, if it is introspected.
    /// Returns whether the validity has changed. Fails if the token authorizes the stream no
    /// longer. A token that has expired still does during the grace.
    pub(super) fn apply_last_introspection(&self, now: UnixTime) -> Result<bool, StreamEndReason> {
        // The lock is held until the validity is stored, so that `replace` does not come in
        // between.
        let watched = self.watched.lock();
        let Some(watched_token) = &*watched else {
            return Ok(false);
        };
        let latest = match watched_token.latest() {
            Err(RecheckFailure::Expired) if self.grace > 0 => {
                // The issuer may have shortened the validity, or not have limited it before.
                let now = now.as_millis();
                return Ok(self.valid_until.fetch_min(now, Ordering::Relaxed) > now);
            }
            latest => latest?,
        };
        if !self.is_covered_by(latest.principal().scopes()) {
            return Err(StreamEndReason::ScopesReduced);
        }
        let valid_until = validity(&latest, true);
        Ok(self.valid_until.swap(valid_until, Ordering::Relaxed) != valid_until)
    }
}

/// Returns the end of a token's validity in milliseconds of Unix time. A token without an expiry is
/// valid as long as it can be introspected again.
pub(super) fn validity(verified: &VerifiedToken, is_rechecked: bool) -> u64 {
    let principal = verified.principal();
    match principal.valid_until() {
        Some(end) => end.as_millis(),
        None if is_rechecked => NO_EXPIRY,
        None => principal.expires().as_millis(),
    }
}
