//! [`TrustedIssuer`]: an issuer, its keys and their refresh.

mod activity;
pub(crate) mod call_counter;
mod health;
mod key_fetcher;
mod keys;
mod refresh;
pub(crate) mod refresh_error;
mod refresh_state;
mod schedule;
pub(crate) mod server_metadata;
mod signature;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use portcullis_discovery::Fetch;
use portcullis_metadata::{AccessToken, Clock, IntrospectionResponse, Issuer, JwkSet, UnixTime};
use tokio::{runtime::Handle, task::AbortHandle, time::timeout_at};

pub use self::{activity::IssuerActivity, health::IssuerHealth, refresh_error::RefreshError};
use self::{
    key_fetcher::KeyFetcher,
    keys::Keys,
    refresh::refresh_periodically,
    refresh_state::{RefreshState, Requester},
    server_metadata::ServerMetadata,
};
use crate::{
    cache::MAX_LIFETIME,
    error::VerifyError,
    introspection::{CallState, IntrospectionClient},
    recheck::Rechecks,
    settings::{IssuerSettings, KeySource, VerifierSettingsError},
    time::Deadline,
};

/// An issuer whose tokens are accepted, its keys and their refresh. Several verifiers can share it.
///
/// Keys are fetched on the runtime that is passed to [`new`](Self::new), by one refresh at a time:
///
/// - in the background, once [`spawn_refresh`](Self::spawn_refresh) was called;
/// - when a token needs an unknown key, at most once per [`cooldown`](IssuerSettings::cooldown).
///
/// A key set is fresh for 10 min or for the `max-age` of its response, within 1 min to 24 h. A
/// failed refresh removes nothing: the keys remain in use until they have been stale for
/// [`max_stale`](IssuerSettings::max_stale).
///
/// If tokens are introspected, the refresh also discovers the introspection endpoint. It remains in
/// use while the metadata cannot be fetched, and is no longer used if the metadata stops naming a
/// usable one.
pub struct TrustedIssuer {
    settings: IssuerSettings,
    keys: Keys,
    /// `None` if the keys are fixed or not needed.
    key_fetcher: Option<KeyFetcher>,
    /// `None` if tokens are verified by signature only.
    introspection: Option<Arc<IntrospectionClient>>,
    refresh_state: RefreshState,
    clock: Arc<dyn Clock>,
    /// The runtime of fetches and introspection calls.
    control: Handle,
    refresh_task: OnceLock<AbortHandle>,
    /// The repeated introspection of tokens that open streams depend on.
    rechecks: Arc<Rechecks>,
}

impl TrustedIssuer {
    /// Creates an issuer. It has no keys yet unless the settings contain them, and nothing is
    /// fetched.
    ///
    /// Fetches run on `control`, so that their connections do not depend on the runtime of a
    /// worker. `control` and the runtimes that verify tokens must have tokio's time enabled.
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
        let metadata = ServerMetadata::new(
            settings.issuer.clone(),
            policy,
            Arc::clone(&fetch),
            Arc::clone(&clock),
        );
        let introspection = match settings.validation.introspection() {
            Some(client) => Some(IntrospectionClient::new(
                &settings,
                client,
                &metadata,
                Arc::clone(&fetch),
                control.clone(),
            )?),
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
        let refresh_state = RefreshState::new();
        let refresh_task = OnceLock::new();
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

    /// Starts the background refresh: immediately, then before the keys expire. After failures it
    /// retries with delays that grow from 1 s to 1 min. It stops when the last reference to this
    /// issuer is dropped. Further calls do nothing.
    ///
    /// If tokens are introspected, each refresh also probes the endpoint with a random token, and
    /// so does a rejected call. While the endpoint rejects this client, the issuer is not usable.
    pub fn spawn_refresh(self: &Arc<Self>) {
        if self.needs_refresh() || self.introspection.is_some() {
            let spawn = || {
                self.control
                    .spawn(refresh_periodically(Arc::downgrade(self)))
                    .abort_handle()
            };
            self.refresh_task.get_or_init(spawn);
        }
    }

    /// Fetches the keys and discovers the introspection endpoint now, or waits for the running
    /// refresh. The cooldown does not apply.
    ///
    /// # Errors
    /// Fails if the keys cannot be fetched or no endpoint is found. The current keys remain in use,
    /// and so does the endpoint, unless the new metadata names no usable one.
    pub async fn refresh_now(self: &Arc<Self>) -> Result<(), RefreshError> {
        match self.refresh(Requester::Application) {
            Some(result) => result
                .recv()
                .await
                .unwrap_or(Err(RefreshError::Interrupted)),
            None => Ok(()),
        }
    }

    /// Starts the checks of [watched tokens](crate::WatchedToken) that are due. Call it about twice
    /// a second. It does not wait, and is cheap if no token is watched.
    pub fn start_due_rechecks(&self) {
        self.rechecks.start_due();
    }

    /// Makes every verifier verify all cached tokens of this issuer again, including introspected
    /// ones and those whose verification is in progress.
    /// [`Verifier::sweep`](crate::Verifier::sweep) frees their memory.
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

    /// Returns the schedule of watched tokens.
    pub(crate) fn rechecks(&self) -> &Arc<Rechecks> {
        &self.rechecks
    }

    pub(crate) fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// Returns the current monotonic time.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Returns the generation of the keys, with which cached tokens are compared.
    pub(crate) fn generation(&self) -> u64 {
        self.keys.generation()
    }

    /// Returns how long a verified token of this issuer may be cached.
    pub(crate) fn cache_lifetime(&self) -> Duration {
        self.settings
            .validation
            .introspection()
            .map_or(MAX_LIFETIME, |introspection| introspection.cache_lifetime)
    }

    /// Introspects a token. The endpoint is discovered first if it is unknown. The response is not
    /// validated. `number` differs before and after the token was found inactive elsewhere. Fails
    /// with [`VerifyError::IssuerUnavailable`] if there is no response until the deadline, and with
    /// [`VerifyError::IntrospectionBusy`] if too many calls are running or too many requests wait.
    pub(crate) async fn introspect(
        self: &Arc<Self>,
        token: &AccessToken,
        number: u64,
        deadline: &mut Deadline,
    ) -> Result<Arc<IntrospectionResponse>, VerifyError> {
        let Some(introspection) = &self.introspection else {
            return Err(self.unavailable());
        };
        let _place = introspection.place()?;
        if !introspection.is_ready()
            && let Some(refreshed) = self.refresh(Requester::Token)
        {
            // The result does not matter: the endpoint may be known although the keys cannot be
            // fetched.
            let _ = timeout_at(deadline.get(), refreshed.recv()).await;
        }
        if !introspection.is_ready() {
            return Err(self.unavailable());
        }
        let state = CallState {
            generation: self.generation(),
            number,
        };
        introspection.introspect(token, state, deadline.get()).await
    }

    /// Returns the error for a token that cannot be verified before the next refresh.
    fn unavailable(&self) -> VerifyError {
        let retry_after = self
            .refresh_state
            .retry_after(self.clock.monotonic(), self.settings.cooldown);
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
        _ => Err(VerifierSettingsError::NoUsableKey {
            issuer: settings.issuer.clone(),
        }),
    }
}

#[cfg(test)]
mod tests;
