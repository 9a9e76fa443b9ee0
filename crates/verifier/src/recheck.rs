//! Introspected tokens that are checked again while something long, such as an event stream, depends on them.

mod queue;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis_metadata::AccessToken;

use crate::{Principal, VerifiedToken, Verifier, VerifyError};
pub(crate) use queue::Rechecks;

/// How long a check that is due may be delayed, for any reason, before the token counts as unconfirmed. A call to the
/// issuer takes at most 5 s.
const LATE: Duration = Duration::from_secs(10);
/// After how long a check is repeated that found too many calls to the issuer in progress.
const RETRY_WHEN_BUSY: Duration = Duration::from_secs(1);

/// An introspected token, kept so that its issuer can be asked about it again. Made by [`Verifier::hold`].
///
/// The token is in memory that is wiped when the value is dropped. It cannot be read, and `Debug` does not show it.
pub struct HeldToken {
    verifier: Arc<Verifier>,
    verified: VerifiedToken,
    token: AccessToken,
}

/// An introspected token that is checked again at the interval for which its issuer's answers are remembered
/// ([`IntrospectionSettings::cache_lifetime`](crate::IntrospectionSettings::cache_lifetime)); every 5 s where they are not.
///
/// It is checked as long as a reference to it lives, once for all references of one verifier. Each check is up to a fifth
/// of the interval early, so that the checks of many tokens spread out and a revocation is never noticed later than the
/// setting promises. A token that a request had introspected meanwhile is not introspected twice.
/// [`TrustedIssuer::start_due_rechecks`](crate::TrustedIssuer::start_due_rechecks) starts the checks.
pub struct WatchedToken {
    held: HeldToken,
    rechecks: Arc<Rechecks>,
    state: Mutex<State>,
}

/// Why a watched token no longer authorizes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecheckFailure {
    /// The issuer names an expiry that has passed.
    Expired,
    /// The issuer calls it inactive, or the verifier refuses the issuer's answer, for example because of its audience. A
    /// token whose subject or client changed counts as inactive, too.
    Inactive,
    /// The issuer has not confirmed it for two intervals: calls fail, or cannot be made.
    Unconfirmed,
}

struct State {
    latest: VerifiedToken,
    /// When the issuer last confirmed the token, by the monotonic clock.
    confirmed_at: Duration,
    lost: Option<RecheckFailure>,
}

impl Verifier {
    /// Keeps a token that [`verify`](Self::verify) or [`cached`](Self::cached) accepted as `verified`, so that it can be
    /// [watched](HeldToken::watch). `None` for a token that is verified by its signature alone: what it authorizes
    /// ends with its expiry.
    pub fn hold(self: &Arc<Self>, verified: &VerifiedToken, token: &str) -> Option<HeldToken> {
        verified.principal().is_introspected().then(|| HeldToken {
            verifier: Arc::clone(self),
            verified: verified.clone(),
            token: AccessToken::new(token),
        })
    }
}

impl HeldToken {
    /// Has the token checked again from now on, until the returned value and all others for the same token are dropped.
    /// `None` when the verifier no longer knows the token's issuer.
    pub fn watch(&self) -> Option<Arc<WatchedToken>> {
        let issuer = self.verified.principal().issuer();
        let trusted = self.verifier.issuers().iter().find(|trusted| trusted.issuer() == issuer)?;
        Some(trusted.rechecks().watch(self))
    }
}

impl Clone for HeldToken {
    fn clone(&self) -> Self {
        Self { verifier: Arc::clone(&self.verifier), verified: self.verified.clone(), token: self.token.clone() }
    }
}

impl fmt::Debug for HeldToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldToken").field("verified", &self.verified).finish_non_exhaustive()
    }
}

impl WatchedToken {
    fn new(held: HeldToken, rechecks: Arc<Rechecks>) -> Self {
        let (latest, confirmed_at) = (held.verified.clone(), held.confirmed_at());
        Self { held, rechecks, state: Mutex::new(State { latest, confirmed_at, lost: None }) }
    }

    /// The token as the issuer last described it: its scopes and expiry may have changed. The expiry itself is not compared
    /// with the time here.
    ///
    /// # Errors
    /// When the token no longer authorizes anything. That is final.
    pub fn latest(&self) -> Result<VerifiedToken, RecheckFailure> {
        let now = self.held.verifier.clock().monotonic();
        let state = self.state();
        match state.lost {
            Some(lost) => Err(lost),
            None if now > self.limit(state.confirmed_at).saturating_add(LATE) => Err(RecheckFailure::Unconfirmed),
            None => Ok(state.latest.clone()),
        }
    }

    /// Checks the token once and says when it is due again; `None` when it is lost.
    async fn check(&self) -> Option<Duration> {
        let confirmed_at = self.state().confirmed_at;
        let verified = match self.remembered_since(confirmed_at) {
            Some(verified) => Ok(verified),
            None => self.held.verifier.verify_again(&self.held.token).await,
        };
        let now = self.held.verifier.clock().monotonic();
        let outcome = match verified {
            Ok(verified) if is_same_owner(verified.principal(), self.held.verified.principal()) => {
                let confirmed_at = verified.principal().introspected_at().unwrap_or(now);
                let mut state = self.state();
                (state.latest, state.confirmed_at) = (verified, confirmed_at);
                Ok(self.rechecks.next_after(confirmed_at))
            }
            Ok(_) => Err(RecheckFailure::Inactive),
            Err(VerifyError::Expired) => Err(RecheckFailure::Expired),
            Err(error) if !error.is_unavailable() => Err(RecheckFailure::Inactive),
            Err(_) if now >= self.limit(confirmed_at) => Err(RecheckFailure::Unconfirmed),
            Err(error) => {
                let is_busy = error.retry_after().is_some_and(|after| after <= RETRY_WHEN_BUSY);
                let limit = self.limit(confirmed_at);
                Ok(if is_busy { now.saturating_add(RETRY_WHEN_BUSY).min(limit) } else { limit })
            }
        };
        outcome.map_err(|lost| self.state().lost = Some(lost)).ok()
    }

    /// What a request learned of the token after the last check.
    fn remembered_since(&self, confirmed_at: Duration) -> Option<VerifiedToken> {
        let remembered = self.held.verifier.cached(self.held.token.secret())?;
        (remembered.principal().introspected_at() > Some(confirmed_at)).then_some(remembered)
    }

    /// Until when a token that was confirmed at this time lasts without a confirmation.
    fn limit(&self, confirmed_at: Duration) -> Duration {
        confirmed_at.saturating_add(self.rechecks.interval() * 2)
    }

    fn is_lost(&self) -> bool {
        self.state().lost.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldToken {
    fn confirmed_at(&self) -> Duration {
        self.verified.principal().introspected_at().unwrap_or_default()
    }
}

impl Drop for WatchedToken {
    fn drop(&mut self) {
        self.rechecks.forget(self);
    }
}

impl fmt::Debug for WatchedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedToken").field("held", &self.held).finish_non_exhaustive()
    }
}

fn is_same_owner(one: &Principal, other: &Principal) -> bool {
    (one.issuer(), one.subject(), one.client()) == (other.issuer(), other.subject(), other.client())
}

#[cfg(test)]
mod tests;
