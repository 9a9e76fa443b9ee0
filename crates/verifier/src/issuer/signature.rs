//! The verification of a token's signature with the keys of its issuer.

use std::{sync::Arc, time::Duration};

use portcullis_jose::{CompactJws, JoseError};
use tokio::time::timeout_at;

use super::{TrustedIssuer, refresh_state::Requester};
use crate::{
    error::VerifyError,
    invalid_token_throttle::{Permit, Throttle},
    time::Deadline,
};

pub(crate) struct VerifiedSignature<'i> {
    /// The generation of the keys that verified it.
    pub(crate) generation: u64,
    /// Accepted once the claims are valid, too.
    pub(crate) permit: Permit<'i>,
}

impl TrustedIssuer {
    /// Verifies a signature with the keys and algorithms of this issuer only, after waiting for the
    /// throttle. If the key is unknown, the keys are refreshed once. `now` is the monotonic time.
    /// Fails with [`VerifyError::Jws`] if the algorithm is not allowed, no published key matches or
    /// the signature is invalid, with [`VerifyError::IssuerUnavailable`] if the keys cannot be
    /// fetched until the deadline, and with [`VerifyError::Busy`] if too many tokens wait.
    pub(crate) async fn verify_signature(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
        deadline: &mut Deadline,
    ) -> Result<VerifiedSignature<'_>, VerifyError> {
        let algorithm = token.header().alg();
        if !self.settings.algorithms.contains(algorithm) {
            return Err(JoseError::AlgorithmNotAllowed(algorithm).into());
        }
        if let Some(verified) = self.verify_throttled(token, now, deadline).await? {
            return Ok(verified);
        }
        let refreshed = self.refresh_for_token(deadline).await;
        // Another refresh may have installed the key even if this one failed.
        match self
            .verify_throttled(token, self.clock.monotonic(), deadline)
            .await?
        {
            Some(verified) => Ok(verified),
            None => Err(refreshed.err().unwrap_or(JoseError::UnknownKey.into())),
        }
    }

    /// Verifies a signature once the throttle permits it. Returns `None`, without waiting, if no
    /// usable key matches the token's `kid` and `alg`.
    async fn verify_throttled(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
        deadline: &mut Deadline,
    ) -> Result<Option<VerifiedSignature<'_>>, VerifyError> {
        let throttle = Throttle::of_this_thread();
        let permit = match throttle.try_acquire(&*self.clock, now) {
            Some(permit) => permit,
            None if !self.has_key_for(token) => return Ok(None),
            None => throttle.acquire(&*self.clock, deadline.get()).await?,
        };
        match self.verify_with_current_keys(token, permit.started())? {
            Some(generation) => Ok(Some(VerifiedSignature { generation, permit })),
            None => {
                permit.accept();
                Ok(None)
            }
        }
    }

    /// Returns whether exactly one of the current keys matches the token, usable or not.
    fn has_key_for(&self, token: &CompactJws<'_>) -> bool {
        self.keys
            .current()
            .as_ref()
            .is_some_and(|keys| keys.set().has_key_for(token))
    }

    /// Returns the generation of the keys that verify the signature, or `None` if no usable key
    /// matches the token's `kid` and `alg`.
    fn verify_with_current_keys(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
    ) -> Result<Option<u64>, VerifyError> {
        let generation = self.keys.generation();
        let keys = self.keys.current();
        let Some(keys) = keys
            .as_ref()
            .filter(|keys| keys.is_usable(now, self.settings.max_stale))
        else {
            return Ok(None);
        };
        if !keys.is_fresh(now) {
            // Without a background refresh, stale keys are refreshed here. The token does not wait
            // for it.
            self.refresh(Requester::Token);
        }
        match keys.set().verify(token) {
            Ok(_) => Ok(Some(generation)),
            Err(JoseError::UnknownKey) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the deadline for a refresh of the keys, if one is running or may be started.
    async fn refresh_for_token(
        self: &Arc<Self>,
        deadline: &mut Deadline,
    ) -> Result<(), VerifyError> {
        if self.key_fetcher.is_none() {
            return Err(JoseError::UnknownKey.into());
        }
        let Some(refreshed) = self.refresh(Requester::Token) else {
            return Err(if self.has_all_keys() {
                JoseError::UnknownKey.into()
            } else {
                self.unavailable()
            });
        };
        match timeout_at(deadline.get(), refreshed.recv()).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(_) | Err(_) => Err(self.unavailable()),
        }
    }

    /// Returns whether a key that is not among the current keys is not published.
    fn has_all_keys(&self) -> bool {
        let is_fresh = || {
            self.keys
                .current()
                .as_ref()
                .is_some_and(|keys| keys.is_fresh(self.clock.monotonic()))
        };
        is_fresh() && matches!(self.refresh_state.last(), Some(Ok(())))
    }
}
