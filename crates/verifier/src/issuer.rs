//! [`TrustedIssuer`]: an issuer, its keys and their refresh.

mod activity;
mod health;
mod key_fetcher;
mod keys;
mod refresh;
mod refresh_error;
mod refresh_state;
mod schedule;
mod server_metadata;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use portcullis_discovery::Fetch;
use portcullis_jose::{CompactJws, JoseError};
use portcullis_metadata::{AccessToken, Clock, IntrospectionResponse, Issuer, JwkSet};
use tokio::{runtime::Handle, task::AbortHandle, time::timeout_at};

use crate::{
    cache::MAX_LIFETIME,
    deadline::Deadline,
    error::VerifyError,
    introspection::{CLIENT_REJECTED, IntrospectionClient},
    invalid_token_throttle::{Permit, Throttle},
    recheck::Rechecks,
    settings::{IssuerSettings, KeySource, VerifierSettingsError},
};
pub(crate) use activity::Counts;
pub use activity::IssuerActivity;
pub use health::IssuerHealth;
use key_fetcher::KeyFetcher;
use keys::Keys;
use refresh::refresh_periodically;
pub use refresh_error::RefreshError;
use refresh_state::{RefreshState, Requester};
pub(crate) use server_metadata::ServerMetadata;

/// An issuer whose tokens are accepted, its keys and their refresh. Several verifiers can share it.
///
/// Keys are fetched on the runtime that is passed to [`new`](Self::new), by one refresh at a time:
///
/// - in the background, once [`spawn_refresh`](Self::spawn_refresh) was called;
/// - when a token needs an unknown key, at most once per [`cooldown`](IssuerSettings::cooldown).
///
/// A key set is fresh for 10 min or for the `max-age` of its response, within 1 min to 24 h. A failed refresh removes
/// nothing: the keys remain in use until they have been stale for [`max_stale`](IssuerSettings::max_stale).
///
/// If tokens are introspected, the refresh also discovers the introspection endpoint. It remains in use while the
/// metadata cannot be fetched, and is no longer used if the metadata stops naming a usable one.
pub struct TrustedIssuer {
    settings: IssuerSettings,
    keys: Keys,
    /// `None` if the keys are fixed or not needed.
    key_fetcher: Option<KeyFetcher>,
    /// `None` if tokens are verified by signature only.
    introspection: Option<Arc<IntrospectionClient>>,
    refresh_state: RefreshState,
    clock: Arc<dyn Clock>,
    control: Handle,
    refresh_task: OnceLock<AbortHandle>,
    rechecks: Arc<Rechecks>,
}

/// A verified signature.
pub(crate) struct VerifiedSignature<'i> {
    /// The generation of the keys that verified it.
    pub(crate) generation: u64,
    /// Accepted once the claims are valid, too.
    pub(crate) permit: Permit<'i>,
}

impl TrustedIssuer {
    /// Creates an issuer. It has no keys yet unless the settings contain them, and nothing is fetched.
    ///
    /// Fetches run on `control`, so that their connections do not depend on the runtime of a worker. `control` and the
    /// runtimes that verify tokens must have tokio's time enabled.
    ///
    /// # Errors
    /// Fails if the settings cannot be used.
    pub fn new(
        settings: IssuerSettings,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
        control: Handle,
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        settings.check()?;
        let policy = settings.url_policy;
        let metadata = ServerMetadata::new(settings.issuer.clone(), policy, Arc::clone(&fetch), Arc::clone(&clock));
        let introspection = match settings.validation.introspection() {
            Some(client) => {
                Some(IntrospectionClient::new(&settings, client, &metadata, Arc::clone(&fetch), control.clone())?)
            }
            None => None,
        };
        let fetcher = |configured| KeyFetcher::new(configured, metadata, policy, fetch);
        let keys = Keys::new();
        let key_fetcher = match &settings.keys {
            _ if !settings.validation.verifies_signature() => None,
            KeySource::Discovered => Some(fetcher(None)),
            KeySource::Uri(uri) => Some(fetcher(Some(uri.clone()))),
            KeySource::Fixed(fixed) => {
                install_fixed(&keys, fixed, &settings, clock.monotonic())?;
                None
            }
        };
        let (refresh_state, refresh_task) = (RefreshState::new(), OnceLock::new());
        let rechecks = Rechecks::new(&settings, Arc::clone(&clock), control.clone());
        Ok(Arc::new(Self {
            settings,
            keys,
            key_fetcher,
            introspection,
            refresh_state,
            clock,
            control,
            refresh_task,
            rechecks,
        }))
    }

    /// Returns the issuer identifier.
    pub fn issuer(&self) -> &Issuer {
        &self.settings.issuer
    }

    /// Starts the background refresh: immediately, then before the keys expire. After failures it retries with delays
    /// that grow from 1 s to 1 min. It stops when the last reference to this issuer is dropped. Further calls do
    /// nothing.
    ///
    /// If tokens are introspected, each refresh also probes the endpoint with a random token, and so does a rejected
    /// call. While the endpoint rejects this client, the issuer is not usable.
    pub fn spawn_refresh(self: &Arc<Self>) {
        if self.needs_refresh() || self.introspection.is_some() {
            let spawn = || self.control.spawn(refresh_periodically(Arc::downgrade(self))).abort_handle();
            self.refresh_task.get_or_init(spawn);
        }
    }

    /// Fetches the keys and discovers the introspection endpoint now, or waits for the running refresh. The cooldown
    /// does not apply.
    ///
    /// # Errors
    /// Fails if the keys cannot be fetched or no endpoint is found. The current keys and endpoint remain in use.
    pub async fn refresh_now(self: &Arc<Self>) -> Result<(), RefreshError> {
        match self.refresh(Requester::Application) {
            Some(result) => result.recv().await.unwrap_or(Err(RefreshError::Interrupted)),
            None => Ok(()),
        }
    }

    /// Returns whether tokens of this issuer can be verified now.
    pub fn health(&self) -> IssuerHealth {
        let failure = match self.refresh_state.last() {
            Some(Err(error)) => Some(error.code()),
            _ => None,
        };
        match &self.introspection {
            Some(introspection) if !introspection.is_ready() => {
                failure.map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed { reason })
            }
            Some(introspection) if introspection.is_client_rejected() => {
                IssuerHealth::Failed { reason: CLIENT_REJECTED }
            }
            Some(introspection) if !self.settings.validation.verifies_signature() => {
                IssuerHealth::Introspected { reason: introspection.last_failure() }
            }
            _ => self.key_health(failure),
        }
    }

    fn key_health(&self, failure: Option<&'static str>) -> IssuerHealth {
        let now = self.clock.monotonic();
        match &*self.keys.current() {
            None => failure.map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed { reason }),
            Some(keys) if keys.set().is_empty() => IssuerHealth::Failed { reason: "issuer.no_usable_key" },
            Some(keys) if keys.is_fresh(now) => IssuerHealth::Usable { keys: keys.set().len(), age: keys.age(now) },
            Some(keys) if keys.is_usable(now, self.settings.max_stale) => {
                IssuerHealth::Stale { keys: keys.set().len(), age: keys.age(now), reason: failure }
            }
            Some(_) => IssuerHealth::Failed { reason: failure.unwrap_or("issuer.keys_too_old") },
        }
    }

    /// Starts the checks of [watched tokens](crate::WatchedToken) that are due. Call it about twice a second. It does
    /// not wait, and is cheap if no token is watched.
    pub fn start_due_rechecks(&self) {
        self.rechecks.start_due();
    }

    /// Returns how often the keys and metadata were fetched, and tokens introspected.
    pub fn activity(&self) -> IssuerActivity {
        let (fetches, fetch_failures) = self.refresh_state.counts();
        let (introspections, introspection_failures) =
            self.introspection.as_ref().map(|client| client.counts()).unwrap_or_default();
        IssuerActivity { fetches, fetch_failures, introspections, introspection_failures }
    }

    /// Makes every verifier verify all cached tokens of this issuer again, including introspected ones and those whose
    /// verification is in progress. [`Verifier::sweep`](crate::Verifier::sweep) frees their memory.
    ///
    /// The keys stay: call [`refresh_now`](Self::refresh_now) to fetch them again.
    pub fn drop_cached_tokens(&self) {
        self.keys.advance_generation();
    }

    /// If tokens are introspected, makes every verifier introspect them again, as
    /// [`drop_cached_tokens`](Self::drop_cached_tokens) does.
    pub fn drop_introspected_tokens(&self) {
        if self.introspection.is_some() {
            self.drop_cached_tokens();
        }
    }

    pub(crate) fn rechecks(&self) -> &Arc<Rechecks> {
        &self.rechecks
    }

    pub(crate) fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Returns the generation of the keys, with which cached tokens are compared.
    pub(crate) fn generation(&self) -> u64 {
        self.keys.generation()
    }

    /// Returns how long a verified token of this issuer may be cached.
    pub(crate) fn cache_lifetime(&self) -> Duration {
        self.settings.validation.introspection().map_or(MAX_LIFETIME, |introspection| introspection.cache_lifetime)
    }

    /// Introspects a token. The endpoint is discovered first if it is unknown.
    pub(crate) async fn introspect(
        self: &Arc<Self>,
        token: &AccessToken,
        deadline: &mut Deadline,
    ) -> Result<Arc<IntrospectionResponse>, VerifyError> {
        let Some(introspection) = &self.introspection else { return Err(self.unavailable()) };
        if !introspection.is_ready()
            && let Some(refreshed) = self.refresh(Requester::Token)
        {
            // Only whether an endpoint is known then matters.
            let _ = timeout_at(deadline.get(), refreshed.recv()).await;
        }
        if !introspection.is_ready() {
            return Err(self.unavailable());
        }
        introspection.introspect(token, deadline.get()).await
    }

    /// Verifies a signature with the keys and algorithms of this issuer only, after waiting for the throttle. If the
    /// key is unknown, the keys are refreshed once. `now` is the monotonic time.
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
        match self.verify_throttled(token, self.clock.monotonic(), deadline).await? {
            Some(verified) => Ok(verified),
            None => Err(refreshed.err().unwrap_or(JoseError::UnknownKey.into())),
        }
    }

    /// Verifies a signature once the throttle permits it. Returns `None`, without waiting, if no usable key matches the
    /// token's `kid` and `alg`.
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

    fn has_key_for(&self, token: &CompactJws<'_>) -> bool {
        self.keys.current().as_ref().is_some_and(|keys| keys.set().has_key_for(token))
    }

    /// Returns the generation of the keys that verify the signature, or `None` if no usable key matches the token's
    /// `kid` and `alg`.
    fn verify_with_current_keys(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
    ) -> Result<Option<u64>, VerifyError> {
        let generation = self.keys.generation();
        let keys = self.keys.current();
        let Some(keys) = keys.as_ref().filter(|keys| keys.is_usable(now, self.settings.max_stale)) else {
            return Ok(None);
        };
        if !keys.is_fresh(now) {
            // Without a background refresh, stale keys are refreshed here. The token does not wait for it.
            self.refresh(Requester::Token);
        }
        match keys.set().verify(token) {
            Ok(_) => Ok(Some(generation)),
            Err(JoseError::UnknownKey) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the deadline for a refresh of the keys, if one is running or may be started.
    async fn refresh_for_token(self: &Arc<Self>, deadline: &mut Deadline) -> Result<(), VerifyError> {
        if self.key_fetcher.is_none() {
            return Err(JoseError::UnknownKey.into());
        }
        let Some(refreshed) = self.refresh(Requester::Token) else {
            return Err(if self.has_all_keys() { JoseError::UnknownKey.into() } else { self.unavailable() });
        };
        match timeout_at(deadline.get(), refreshed.recv()).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(_) | Err(_) => Err(self.unavailable()),
        }
    }

    /// Returns whether a key that is not among the current keys is not published.
    fn has_all_keys(&self) -> bool {
        let is_fresh = || self.keys.current().as_ref().is_some_and(|keys| keys.is_fresh(self.clock.monotonic()));
        is_fresh() && matches!(self.refresh_state.last(), Some(Ok(())))
    }

    fn unavailable(&self) -> VerifyError {
        let retry_after = self.refresh_state.retry_after(self.clock.monotonic(), self.settings.cooldown);
        VerifyError::IssuerUnavailable { retry_after }
    }
}

impl Drop for TrustedIssuer {
    fn drop(&mut self) {
        if let Some(task) = self.refresh_task.get() {
            task.abort();
        }
    }
}

impl fmt::Debug for TrustedIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedIssuer")
            .field("issuer", &self.settings.issuer)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

/// Installs keys that never expire.
fn install_fixed(
    keys: &Keys,
    fixed: &JwkSet,
    settings: &IssuerSettings,
    now: Duration,
) -> Result<(), VerifierSettingsError> {
    let installed = keys.install(fixed.clone(), settings.algorithms, now, Duration::MAX);
    match &*keys.current() {
        Some(keys) if installed.is_ok() && !keys.set().is_empty() => Ok(()),
        _ => Err(VerifierSettingsError::NoUsableKey { issuer: settings.issuer.clone() }),
    }
}

#[cfg(test)]
mod tests;
