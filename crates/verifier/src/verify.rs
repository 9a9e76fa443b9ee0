//! [`Verifier`]: verifies the access tokens of one resource.

mod dropped_tokens;
mod explanation;
mod opaque_token;
mod rejection_log;
mod settings;
mod uncached;

use std::{fmt, sync::Arc, time::Duration};

use portcullis_jose::JoseError;
use portcullis_metadata::{AccessToken, Clock, Now, ResourceUri};

use self::uncached::Verified;
pub use self::{
    explanation::{RuleCheck, TokenRule},
    settings::VerifierSettings,
};
use crate::{
    cache::Cache, error::VerifyError, inactive_tokens::IntrospectedTokens,
    invalid_token_throttle::Throttle, issuer::TrustedIssuer, settings::VerifierSettingsError,
    token_hash::TokenHash, verified_token::VerifiedToken,
};

/// Verifies the access tokens of one resource and caches verified tokens.
///
/// The unverified `iss` of a token selects exactly one of the configured issuers. The token is then
/// verified with that issuer's keys, algorithms and settings only. An opaque token, which is any
/// token that is not a JWS, goes to the issuer with
/// [`Validation::Introspection`](crate::Validation::Introspection), if there is one.
///
/// A verified token is cached until its `exp`, until its issuer's keys change, and for at most 5
/// min, or 30 s if it was introspected. Rejected tokens are not cached. Scopes are not checked.
///
/// [`builder`](Self::builder) creates a verifier with the defaults of `portcullis serve`, and the
/// [crate](crate)'s documentation shows an accepted and a rejected token. With [`new`](Self::new),
/// the caller refreshes and sweeps.
pub struct Verifier {
    settings: VerifierSettings,
    issuers: Vec<Arc<TrustedIssuer>>,
    /// The position of the issuer that introspects opaque tokens.
    opaque_token_issuer: Option<usize>,
    clock: Arc<dyn Clock>,
    cache: Cache,
    /// Used only if [`VerifierSettings::inactive_tokens`] is set.
    introspected: IntrospectedTokens,
}

impl Verifier {
    /// Creates a verifier for one resource and its issuers. See [`builder`](Self::builder) for a
    /// simpler way.
    ///
    /// Nothing runs in the background: call [`TrustedIssuer::spawn_refresh`] for each issuer,
    /// [`sweep`](Self::sweep) about once a minute and, if tokens are
    /// [watched](crate::WatchedToken), [`TrustedIssuer::start_due_rechecks`] twice a second.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use portcullis_discovery::{FetchSettings, HttpFetch};
    /// use portcullis_metadata::{Clock, Issuer, ResourceUri, SystemClock};
    /// use portcullis_verifier::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings};
    /// use tokio::runtime::Handle;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    /// let fetch = Arc::new(HttpFetch::new(FetchSettings::default())?);
    /// let settings = IssuerSettings::new(Issuer::parse("https://auth.example.com")?);
    /// let issuer = TrustedIssuer::new(settings, fetch, clock.clone(), Handle::current())?;
    ///
    /// // Two resources share the keys of one issuer.
    /// for resource in ["https://mcp.example.com/a", "https://mcp.example.com/b"] {
    ///     let settings = VerifierSettings::new(ResourceUri::parse(resource)?);
    ///     let verifier = Verifier::new(settings, vec![issuer.clone()], clock.clone())?;
    ///     assert_eq!(verifier.resource().as_str(), resource);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails if there is no issuer, an issuer is given twice, two issuers introspect all their
    /// tokens, or the random number generator fails.
    pub fn new(
        settings: VerifierSettings,
        issuers: Vec<Arc<TrustedIssuer>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        if issuers.is_empty() {
            return Err(VerifierSettingsError::NoIssuer {
                resource: settings.resource,
            });
        }
        for (position, issuer) in issuers.iter().map(|issuer| issuer.issuer()).enumerate() {
            if issuers[..position]
                .iter()
                .any(|earlier| earlier.issuer() == issuer)
            {
                let resource = settings.resource;
                let issuer = issuer.clone();
                return Err(VerifierSettingsError::DuplicateIssuer { resource, issuer });
            }
        }
        let opaque_token_issuer = opaque_token_issuer(&settings.resource, &issuers)?;
        let cache = Cache::new(settings.cache_entries, settings.generation)
            .map_err(|_| VerifierSettingsError::Random)?;
        let introspected = IntrospectedTokens::default();
        Ok(Arc::new(Self {
            settings,
            issuers,
            opaque_token_issuer,
            clock,
            cache,
            introspected,
        }))
    }

    /// Returns the resource whose tokens are verified.
    pub fn resource(&self) -> &ResourceUri {
        &self.settings.resource
    }

    /// Returns the issuers whose tokens are accepted.
    pub fn issuers(&self) -> &[Arc<TrustedIssuer>] {
        &self.issuers
    }

    /// Returns the hash that identifies a token in the tables of this verifier.
    pub(crate) fn token_hash(&self, token: &AccessToken) -> TokenHash {
        self.cache.hash(token.secret())
    }

    /// Returns the clock that all times are read from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns a cached token that is still valid. It neither waits nor allocates. `token` can be
    /// any bytes, for example an unchecked header value. Returns `None` for a token that is not
    /// cached, which may be valid.
    pub fn cached(&self, token: impl AsRef<[u8]>) -> Option<VerifiedToken> {
        self.cached_at(token, self.clock.read())
    }

    /// Like [`cached`](Self::cached), for a caller that has read the verifier's clock for the
    /// request already.
    pub fn cached_at(&self, token: impl AsRef<[u8]>, now: Now) -> Option<VerifiedToken> {
        let token = token.as_ref();
        self.check_length(token).ok()?;
        self.cached_by_hash(self.cache.hash(token), now)
    }

    /// Returns a cached token, and records that this thread serves one.
    fn cached_by_hash(&self, hash: TokenHash, now: Now) -> Option<VerifiedToken> {
        let verified = self.cache.get(hash, now, self.generations())?;
        Throttle::record_served(now.monotonic);
        if let Some(observer) = &self.settings.observer {
            observer.cached();
        }
        Some(verified)
    }

    /// Verifies a token, or returns it from the cache.
    ///
    /// It waits only for an unknown key, for introspection and for the throttle below, for at most
    /// 5 s in total. The runtime must have tokio's time enabled.
    ///
    /// The throttle protects requests with cached tokens from floods of invalid ones: while a
    /// thread serves cached tokens, tokens that are rejected after their signature was computed
    /// take at most a tenth of its time. Up to 1024 tokens wait per thread. Outside a runtime no
    /// token waits.
    ///
    /// # Errors
    /// Fails if the token is rejected, or if it cannot be verified now
    /// ([`VerifyError::is_unavailable`]).
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        self.check_length(token.secret().as_bytes())?;
        let hash = self.cache.hash(token.secret());
        let now = self.clock.read();
        if let Some(verified) = self.cached_by_hash(hash, now) {
            return Ok(verified);
        }
        self.verify_uncached(token, hash, now).await
    }

    /// Verifies a token without the cache and updates the cache. A rejected token is removed from
    /// it. Fails as [`verify`](Self::verify) does.
    pub(crate) async fn verify_again(
        &self,
        token: &AccessToken,
    ) -> Result<VerifiedToken, VerifyError> {
        let hash = self.cache.hash(token.secret());
        let verified = self.verify_uncached(token, hash, self.clock.read()).await;
        if verified
            .as_ref()
            .is_err_and(|error| !error.is_unavailable())
        {
            self.cache.remove(hash);
        }
        verified
    }

    /// Verifies a token, reports the time to the observer, and caches the token.
    async fn verify_uncached(
        &self,
        token: &AccessToken,
        hash: TokenHash,
        now: Now,
    ) -> Result<VerifiedToken, VerifyError> {
        let verified = self.verify_without_cache(token, now).await;
        if let Some(observer) = &self.settings.observer {
            observer.verified(self.clock.monotonic().saturating_sub(now.monotonic));
        }
        let Verified {
            principal,
            keys,
            introspection,
        } = verified?;
        let verified = VerifiedToken::new(principal);
        let max_lifetime = self
            .issuers
            .get(keys.issuer)
            .map_or(Duration::ZERO, |issuer| issuer.cache_lifetime());
        self.cache.insert(
            hash,
            keys,
            verified.clone(),
            max_lifetime,
            now,
            self.generations(),
        );
        // Checked after the insertion: a drop that is not seen here has yet to remove the entry.
        if introspection.is_some_and(|number| self.was_dropped(token, number)) {
            self.cache.remove(hash);
        }
        Ok(verified)
    }

    /// Removes cached tokens that are no longer valid and returns their number. They are never
    /// returned, but take memory until they are removed; call this about once a minute.
    pub fn sweep(&self) -> usize {
        self.cache.sweep(self.clock.read(), self.generations())
    }

    /// Returns the number of cached tokens. Expired tokens count until they are looked up, evicted
    /// or swept.
    pub fn cached_tokens(&self) -> usize {
        self.cache.len()
    }

    /// Checks the length, before the token is hashed or parsed.
    fn check_length(&self, token: &[u8]) -> Result<(), JoseError> {
        let limit = self.settings.max_token_bytes;
        if token.len() > limit {
            Err(JoseError::TooLarge { limit })
        } else {
            Ok(())
        }
    }

    /// Returns a function that returns the current key generation of an issuer by its position.
    fn generations(&self) -> impl Fn(usize) -> Option<u64> {
        |issuer| self.issuers.get(issuer).map(|issuer| issuer.generation())
    }
}

/// Returns the position of the only issuer that introspects all its tokens.
fn opaque_token_issuer(
    resource: &ResourceUri,
    issuers: &[Arc<TrustedIssuer>],
) -> Result<Option<usize>, VerifierSettingsError> {
    let introspects = |position: &usize| {
        !issuers[*position]
            .settings()
            .validation
            .verifies_signature()
    };
    let mut introspecting = (0..issuers.len()).filter(introspects);
    let first = introspecting.next();
    if let (Some(first), Some(second)) = (first, introspecting.next()) {
        let first = issuers[first].issuer().clone();
        let second = issuers[second].issuer().clone();
        return Err(VerifierSettingsError::AmbiguousIntrospection {
            resource: resource.clone(),
            first,
            second,
        });
    }
    Ok(first)
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("settings", &self.settings)
            .field("issuers", &self.issuers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
