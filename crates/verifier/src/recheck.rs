//! [`WatchedToken`]: the repeated introspection of a token that an open stream depends on.
//!
//! It knows neither the issuer, whose schedule it is part of, nor the verifier: [`TokenCheck`]
//! stands for both.

mod queue;

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_discovery::BoxFuture;
use portcullis_metadata::Now;

use crate::{
    error::VerifyError, principal::Principal, token_hash::TokenHash, verified_token::VerifiedToken,
};
pub(crate) use queue::Rechecks;

/// How long a check may be delayed before the token is unconfirmed. A call to the issuer takes at
/// most 5 s.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The delay before a check is repeated because too many calls were running.
const RETRY_WHEN_BUSY: Duration = Duration::from_secs(1);

/// A token, and how it is checked.
pub(crate) trait TokenCheck: Send + Sync {
    fn hash(&self) -> TokenHash;

    /// Returns the token if it is cached.
    fn cached(&self) -> Option<VerifiedToken>;

    /// Introspects the token.
    fn verify_again(&self) -> BoxFuture<'_, Result<VerifiedToken, VerifyError>>;

    /// Returns the time by the verifier's clock.
    fn now(&self) -> Now;
}

/// An introspected token that is introspected periodically.
///
/// The interval is the [`cache_lifetime`](crate::IntrospectionSettings::cache_lifetime) of the
/// issuer's responses and at least 1 s, or 5 s if they are not cached. Each check is early by up to
/// a fifth of the interval, so that checks are spread out and a revocation is noticed in time. All
/// references for one token share its checks, and an introspection for a request counts as a check.
/// The checks end when the last reference is dropped. They are started by
/// [`TrustedIssuer::start_due_rechecks`](crate::TrustedIssuer::start_due_rechecks).
pub struct WatchedToken {
    check: Box<dyn TokenCheck>,
    hash: TokenHash,
    /// The token as it was when the watch began.
    first: VerifiedToken,
    rechecks: Arc<Rechecks>,
    state: Mutex<State>,
}

/// Why a watched token is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecheckFailure {
    /// The token has expired. If its expiration time is over, this stands also for an inactive
    /// token and for one that the issuer has not confirmed: issuers report expired tokens as
    /// inactive.
    Expired,
    /// The token is inactive, the verifier rejects the introspection response, or the token's
    /// subject or client has changed.
    Inactive,
    /// The issuer has not confirmed the token for two intervals.
    Unconfirmed,
}

/// What the checks of a token have found so far.
struct State {
    latest: VerifiedToken,
    /// When the issuer last confirmed the token, by the monotonic clock.
    confirmed_at: Duration,
    failure: Option<RecheckFailure>,
}

impl WatchedToken {
    fn new(check: Box<dyn TokenCheck>, first: VerifiedToken, rechecks: Arc<Rechecks>) -> Self {
        let (hash, latest, confirmed_at) = (check.hash(), first.clone(), confirmed_at(&first));
        Self {
            check,
            hash,
            first,
            rechecks,
            state: Mutex::new(State {
                latest,
                confirmed_at,
                failure: None,
            }),
        }
    }

    /// Returns the token as last introspected. Its scopes and expiration time may have changed. The
    /// expiration time is not compared with the clock.
    ///
    /// # Errors
    /// Fails if the token is no longer valid. All later calls fail, too.
    pub fn latest(&self) -> Result<VerifiedToken, RecheckFailure> {
        let now = self.check.now();
        let mut state = self.state.lock();
        let limit = self.limit(state.confirmed_at).saturating_add(MAX_DELAY);
        if state.failure.is_none() && now.monotonic > limit {
            state.failure = Some(unless_expired(
                RecheckFailure::Unconfirmed,
                &state.latest,
                now,
            ));
        }
        state.failure.map_or_else(|| Ok(state.latest.clone()), Err)
    }

    /// Checks the token once. Returns when the next check is due, or `None` if the token is no
    /// longer valid.
    async fn check(&self) -> Option<Duration> {
        if self.has_failed() {
            return None;
        }
        let confirmed_at = self.state.lock().confirmed_at;
        let verified = match self.cached_since(confirmed_at) {
            Some(verified) => Ok(verified),
            None => self.check.verify_again().await,
        };
        let now = self.check.now();
        let next = match verified {
            Ok(verified) if is_same_owner(verified.principal(), self.first.principal()) => {
                Ok(self.confirm(verified, now.monotonic))
            }
            Ok(_) => Err(RecheckFailure::Inactive),
            Err(error) => self.next_after_error(&error, confirmed_at, now),
        };
        next.inspect_err(|failure| self.state.lock().failure = Some(*failure))
            .ok()
    }

    /// Records that the issuer has confirmed the token. Returns when the next check is due.
    fn confirm(&self, verified: VerifiedToken, now: Duration) -> Duration {
        let confirmed_at = verified.principal().introspected_at().unwrap_or(now);
        let mut state = self.state.lock();
        (state.latest, state.confirmed_at) = (verified, confirmed_at);
        self.rechecks.next_after(confirmed_at)
    }

    /// Returns when a check that failed is repeated: soon if too many calls were running, otherwise
    /// at the time until which the last confirmation is sufficient.
    fn next_after_error(
        &self,
        error: &VerifyError,
        confirmed_at: Duration,
        now: Now,
    ) -> Result<Duration, RecheckFailure> {
        let limit = self.limit(confirmed_at);
        let failed = |failure| Err(unless_expired(failure, &self.state.lock().latest, now));
        match error {
            VerifyError::Expired => Err(RecheckFailure::Expired),
            VerifyError::Inactive => failed(RecheckFailure::Inactive),
            error if !error.is_unavailable() => Err(RecheckFailure::Inactive),
            _ if now.monotonic >= limit => failed(RecheckFailure::Unconfirmed),
            error
                if error
                    .retry_after()
                    .is_some_and(|after| after <= RETRY_WHEN_BUSY) =>
            {
                Ok(now.monotonic.saturating_add(RETRY_WHEN_BUSY).min(limit))
            }
            _ => Ok(limit),
        }
    }

    /// Returns the token if a request has introspected it since this time.
    fn cached_since(&self, confirmed_at: Duration) -> Option<VerifiedToken> {
        let cached = self.check.cached()?;
        (cached.principal().introspected_at() > Some(confirmed_at)).then_some(cached)
    }

    /// Returns the time until which a confirmation at this time is sufficient.
    fn limit(&self, confirmed_at: Duration) -> Duration {
        confirmed_at.saturating_add(self.rechecks.interval() * 2)
    }

    /// Returns whether the token is no longer valid. It is then not checked again.
    fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }
}

impl Drop for WatchedToken {
    fn drop(&mut self) {
        self.rechecks.forget(self);
    }
}

impl fmt::Debug for WatchedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedToken")
            .field("verified", &self.first)
            .finish_non_exhaustive()
    }
}

/// Returns the monotonic time at which the issuer confirmed a token.
fn confirmed_at(verified: &VerifiedToken) -> Duration {
    verified.principal().introspected_at().unwrap_or_default()
}

/// Returns this failure, or that the token has expired if it has an expiration time and that is
/// over.
fn unless_expired(failure: RecheckFailure, latest: &VerifiedToken, now: Now) -> RecheckFailure {
    let principal = latest.principal();
    if principal.valid_until().is_some() && now.unix >= principal.expires() {
        RecheckFailure::Expired
    } else {
        failure
    }
}

/// Returns whether two principals are the same subject with the same client.
fn is_same_owner(one: &Principal, other: &Principal) -> bool {
    (one.issuer(), one.subject(), one.client()) == (other.issuer(), other.subject(), other.client())
}

#[cfg(test)]
mod tests;
