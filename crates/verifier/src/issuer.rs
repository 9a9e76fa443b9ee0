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
    IssuerHealth, IssuerSettings, KeySource, RefreshError, VerifierSettingsError, VerifyError,
    cache::MAX_LIFE,
    deadline::Deadline,
    flight::{AskedBy, Flight},
    introspection::{CLIENT_REJECTED, Introspection},
    keys::Keys,
    lane::{Lane, Turn},
    recheck::Rechecks,
    server_metadata::ServerMetadata,
    source::Source,
};
use refresh::{keep_fresh, outcome};

mod refresh;

/// An issuer whose tokens are taken, with its keys and their life cycle.
///
/// Keys are fetched on the runtime given to [`new`](Self::new), by one refresh at a time: in the background once
/// [`spawn_refresh`](Self::spawn_refresh) is called, and when a token comes whose key is not held, at most once a
/// [`cooldown`](IssuerSettings::cooldown). A set is fresh for 10 min, or for its response's `max-age` within 1 min and
/// 24 h. A failed refresh takes nothing away: the keys that are held go on serving, up to
/// [`max_stale`](IssuerSettings::max_stale) past their age. One issuer can serve any number of verifiers.
///
/// Where its tokens are introspected, the refresh finds the endpoint as well; one that is found goes on serving while the
/// issuer's metadata cannot be had, and none serves while the metadata names none that can be used.
pub struct TrustedIssuer {
    settings: IssuerSettings,
    keys: Keys,
    /// None where the keys are given for good, and where none are needed.
    source: Option<Source>,
    /// None where its tokens are verified by signature alone.
    introspection: Option<Arc<Introspection>>,
    flight: Flight,
    clock: Arc<dyn Clock>,
    control: Handle,
    refresher: OnceLock<AbortHandle>,
    rechecks: Arc<Rechecks>,
}

/// A signature that verified.
pub(crate) struct Signed<'i> {
    /// The state of the keys that it verified with.
    pub(crate) generation: u64,
    /// To be accepted once nothing else speaks against the token.
    pub(crate) turn: Turn<'i>,
}

impl TrustedIssuer {
    /// An issuer without keys as yet, unless they are given in the settings. Nothing is fetched here.
    ///
    /// `control` is where fetches run, so that no worker's runtime owns their connections. It and the runtimes that
    /// verify need tokio's time enabled.
    ///
    /// # Errors
    /// When the settings cannot be used; see [`VerifierSettingsError`].
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
            Some(asked) => Some(Introspection::new(&settings, asked, &metadata, Arc::clone(&fetch), control.clone())?),
            None => None,
        };
        let source = |configured| Source::new(configured, metadata, policy, fetch);
        let keys = Keys::new();
        let source = match &settings.keys {
            _ if !settings.validation.verifies_signature() => None,
            KeySource::Discovered => Some(source(None)),
            KeySource::Uri(uri) => Some(source(Some(uri.clone()))),
            KeySource::Fixed(given) => {
                hold_for_good(&keys, given, &settings, clock.monotonic())?;
                None
            }
        };
        let (flight, refresher) = (Flight::default(), OnceLock::new());
        let rechecks = Rechecks::new(&settings, Arc::clone(&clock), control.clone());
        Ok(Arc::new(Self { settings, keys, source, introspection, flight, clock, control, refresher, rechecks }))
    }

    /// The issuer.
    pub fn issuer(&self) -> &Issuer {
        &self.settings.issuer
    }

    /// Starts the background refresh: at once, then ahead of the keys' age; after failures with growing pauses from
    /// 1 s to 1 min. It ends with the last reference to this issuer. A second call does nothing.
    ///
    /// Where tokens are introspected, each refresh tests the endpoint with a random token; so does a rejected call about a
    /// client's token. While the endpoint rejects this server's client, the issuer is not usable.
    pub fn spawn_refresh(self: &Arc<Self>) {
        if self.has_refresh() || self.introspection.is_some() {
            self.refresher.get_or_init(|| self.control.spawn(keep_fresh(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Fetches the keys and looks for the introspection endpoint now, or waits for the refresh that is under way. The
    /// cooldown does not apply.
    ///
    /// # Errors
    /// When the keys could not be fetched, or no endpoint was found. What is held serves on.
    pub async fn refresh_now(self: &Arc<Self>) -> Result<(), RefreshError> {
        match self.refresh(AskedBy::Us) {
            Some(landed) => outcome(landed).await,
            None => Ok(()),
        }
    }

    /// Whether this issuer's tokens can be verified right now.
    pub fn health(&self) -> IssuerHealth {
        let failure = match self.flight.last() {
            Some(Err(error)) => Some(error.code()),
            _ => None,
        };
        match &self.introspection {
            Some(introspection) if !introspection.is_ready() => {
                failure.map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed { reason })
            }
            Some(introspection) if introspection.is_rejecting() => IssuerHealth::Failed { reason: CLIENT_REJECTED },
            Some(introspection) if !self.settings.validation.verifies_signature() => {
                IssuerHealth::Introspected { reason: introspection.last_failure() }
            }
            _ => self.health_of_keys(failure),
        }
    }

    fn health_of_keys(&self, failure: Option<&'static str>) -> IssuerHealth {
        let now = self.clock.monotonic();
        match &*self.keys.held() {
            None => failure.map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed { reason }),
            Some(held) if held.set().is_empty() => IssuerHealth::Failed { reason: "issuer.no_usable_key" },
            Some(held) if held.is_fresh(now) => IssuerHealth::Usable { keys: held.set().len(), age: held.age(now) },
            Some(held) if held.is_usable(now, self.settings.max_stale) => {
                IssuerHealth::Stale { keys: held.set().len(), age: held.age(now), reason: failure }
            }
            Some(_) => IssuerHealth::Failed { reason: failure.unwrap_or("issuer.keys_too_old") },
        }
    }

    /// Starts checking those [watched tokens](crate::WatchedToken) again whose time has come. Call it about twice a
    /// second; it does not wait, and costs nothing where no token is watched.
    pub fn start_due_rechecks(&self) {
        self.rechecks.start_due();
    }

    pub(crate) fn rechecks(&self) -> &Arc<Rechecks> {
        &self.rechecks
    }

    pub(crate) fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// The state of the keys, which cached tokens are compared with.
    pub(crate) fn generation(&self) -> u64 {
        self.keys.generation()
    }

    /// How long a token of this issuer counts at most, after it was verified.
    pub(crate) fn cache_lifetime(&self) -> Duration {
        self.settings.validation.introspection().map_or(MAX_LIFE, |introspection| introspection.cache_lifetime)
    }

    /// Asks the issuer about a token, and says what it says. Where to ask is found out first, if need be.
    pub(crate) async fn introspect(
        self: &Arc<Self>,
        token: &AccessToken,
        deadline: &mut Deadline,
    ) -> Result<Arc<IntrospectionResponse>, VerifyError> {
        let Some(introspection) = &self.introspection else { return Err(self.unavailable()) };
        if !introspection.is_ready()
            && let Some(landed) = self.refresh(AskedBy::Token)
        {
            // Judged by what is known then, whatever the outcome.
            let _ = timeout_at(deadline.get(), outcome(landed)).await;
        }
        if !introspection.is_ready() {
            return Err(self.unavailable());
        }
        introspection.ask(token, deadline.get()).await
    }

    /// Verifies a signature with this issuer's keys and algorithms alone, when it is its turn. A key that is not held is
    /// asked for, once, until the deadline. `now` is the clock's monotonic reading.
    pub(crate) async fn verify_signature(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
        deadline: &mut Deadline,
    ) -> Result<Signed<'_>, VerifyError> {
        let algorithm = token.header().alg();
        if !self.settings.algorithms.contains(algorithm) {
            return Err(JoseError::AlgorithmNotAllowed(algorithm).into());
        }
        if let Some(signed) = self.verify_in_turn(token, now, deadline).await? {
            return Ok(signed);
        }
        let renewed = self.renew(deadline).await;
        // Judged again whatever the outcome: another refresh may have landed since the keys were read.
        match self.verify_in_turn(token, self.clock.monotonic(), deadline).await? {
            Some(signed) => Ok(signed),
            None => Err(renewed.err().unwrap_or(JoseError::UnknownKey.into())),
        }
    }

    /// None when no key that is held and still usable has the token's (kid, alg): that costs nothing, and waits for
    /// nobody.
    async fn verify_in_turn(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
        now: Duration,
        deadline: &mut Deadline,
    ) -> Result<Option<Signed<'_>>, VerifyError> {
        let lane = Lane::of_this_thread();
        let turn = match lane.turn_at_once(&*self.clock, now) {
            Some(turn) => turn,
            None if !self.has_key_for(token) => return Ok(None),
            None => lane.turn_in_order(&*self.clock, deadline.get()).await?,
        };
        match self.verify_with_held(token, turn.started())? {
            Some(generation) => Ok(Some(Signed { generation, turn })),
            None => {
                turn.accept();
                Ok(None)
            }
        }
    }

    fn has_key_for(&self, token: &CompactJws<'_>) -> bool {
        self.keys.held().as_ref().is_some_and(|held| held.set().has_key_for(token))
    }

    /// With which state of the keys the signature verifies. None when no key that is held and still usable has the
    /// token's (kid, alg).
    fn verify_with_held(self: &Arc<Self>, token: &CompactJws<'_>, now: Duration) -> Result<Option<u64>, VerifyError> {
        let generation = self.keys.generation();
        let held = self.keys.held();
        let Some(held) = held.as_ref().filter(|held| held.is_usable(now, self.settings.max_stale)) else {
            return Ok(None);
        };
        if !held.is_fresh(now) {
            // Whoever runs no background refresh gets younger keys too; nobody waits for them here.
            self.refresh(AskedBy::Token);
        }
        match held.set().verify(token) {
            Ok(_) => Ok(Some(generation)),
            Err(JoseError::UnknownKey) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a refresh of the keys, if one may be started or is under way, until the deadline.
    async fn renew(self: &Arc<Self>, deadline: &mut Deadline) -> Result<(), VerifyError> {
        if self.source.is_none() {
            return Err(JoseError::UnknownKey.into());
        }
        let Some(landed) = self.refresh(AskedBy::Token) else {
            return Err(if self.knows_all_keys() { JoseError::UnknownKey.into() } else { self.unavailable() });
        };
        match timeout_at(deadline.get(), outcome(landed)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.unavailable()),
        }
    }

    /// Whether a key that is not held can be taken for one that is not published.
    fn knows_all_keys(&self) -> bool {
        let fresh = || self.keys.held().as_ref().is_some_and(|held| held.is_fresh(self.clock.monotonic()));
        fresh() && matches!(self.flight.last(), Some(Ok(())))
    }

    fn unavailable(&self) -> VerifyError {
        let retry_after = self.flight.retry_after(self.clock.monotonic(), self.settings.cooldown);
        VerifyError::IssuerUnavailable { retry_after }
    }
}

impl Drop for TrustedIssuer {
    fn drop(&mut self) {
        if let Some(refresher) = self.refresher.get() {
            refresher.abort();
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

fn hold_for_good(
    keys: &Keys,
    given: &JwkSet,
    settings: &IssuerSettings,
    now: Duration,
) -> Result<(), VerifierSettingsError> {
    let installed = keys.install(given.clone(), settings.algorithms, now, Duration::MAX);
    match &*keys.held() {
        Some(held) if installed.is_ok() && !held.set().is_empty() => Ok(()),
        _ => Err(VerifierSettingsError::NoUsableKey { issuer: settings.issuer.clone() }),
    }
}

#[cfg(test)]
mod tests;
