//! The refresh of an issuer's keys and introspection endpoint.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use portcullis_metadata::EscapedText;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    TrustedIssuer,
    key_fetcher::FetchedKeys,
    refresh_error::RefreshError,
    refresh_state::{RefreshResult, Requester},
    schedule,
};
use crate::single_flight::{Joined, Operation, ResultReceiver};

/// The maximum duration of a fetch of the keys, including discovery.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of characters of a logged cause.
const MAX_CAUSE: usize = 300;
/// The minimum time between two probes of an introspection endpoint that rejected calls cause.
const MIN_PROBE_INTERVAL: Duration = Duration::from_secs(1);

impl TrustedIssuer {
    /// Starts a refresh on the control runtime or joins the running one. Returns `None` during the
    /// cooldown or if there is nothing to fetch. The refresh continues if no one waits for its
    /// result.
    pub(super) fn refresh(
        self: &Arc<Self>,
        requester: Requester,
    ) -> Option<ResultReceiver<RefreshResult>> {
        if !self.needs_refresh() {
            return None;
        }
        match self
            .refresh_state
            .join(requester, self.clock.monotonic(), self.settings.cooldown)?
        {
            Joined::Leader(operation, receiver) => {
                let running = RunningRefresh::new(Arc::clone(self), operation);
                self.control.spawn(running.run());
                Some(receiver)
            }
            Joined::Follower(receiver) => Some(receiver),
            Joined::Full => None,
        }
    }

    /// Returns whether there is anything to fetch.
    pub(super) fn needs_refresh(&self) -> bool {
        self.key_fetcher.is_some()
            || self
                .introspection
                .as_ref()
                .is_some_and(|client| client.is_discovered())
    }

    /// Fetches the keys and discovers the introspection endpoint.
    async fn fetch_all(&self) -> RefreshResult {
        match self.fetch_keys().await {
            // The endpoint is in the same metadata, which another fetch would not get either.
            Err(error @ RefreshError::Discovery(_)) => Err(error),
            keys => keys.and(self.discover_endpoint().await),
        }
    }

    /// Discovers the introspection endpoint, if tokens are introspected, and logs a failure.
    async fn discover_endpoint(&self) -> RefreshResult {
        let Some(introspection) = &self.introspection else {
            return Ok(());
        };
        introspection
            .discover_endpoint()
            .await
            .inspect_err(|error| {
                tracing::warn!(
                    token.issuer = %self.settings.issuer,
                    issuer.failure = error.code(),
                    "cannot find the introspection endpoint: {error}"
                );
            })
    }

    /// Probes the introspection endpoint, if there is one. Returns whether it works.
    async fn probe_introspection(&self) -> bool {
        match &self.introspection {
            Some(introspection) => introspection.probe().await.is_ok(),
            None => true,
        }
    }

    /// Fetches and installs the keys, if they are needed and not fixed, and logs a failure.
    async fn fetch_keys(&self) -> RefreshResult {
        let Some(fetcher) = &self.key_fetcher else {
            return Ok(());
        };
        let result = match timeout(FETCH_TIMEOUT, fetcher.fetch()).await {
            Ok(Ok(fetched)) => self.install(fetched),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(RefreshError::Timeout),
        };
        if let Err(error) = &result {
            tracing::warn!(
                token.issuer = %self.settings.issuer,
                issuer.failure = error.code(),
                cause = last_cause(error),
                "cannot fetch issuer keys: {error}"
            );
        }
        result
    }

    fn install(&self, fetched: FetchedKeys) -> RefreshResult {
        let now = self.clock.monotonic();
        let FetchedKeys { keys, max_age, url } = fetched;
        let installed = self
            .keys
            .install(keys, self.settings.algorithms, now, max_age);
        if installed.map_err(|error| RefreshError::Keys { url, error })? {
            let keys = self
                .keys
                .current()
                .as_ref()
                .map_or(0, |keys| keys.set().len());
            tracing::info!(token.issuer = %self.settings.issuer, issuer.keys = keys, "issuer keys changed");
        }
        Ok(())
    }
}

/// A refresh whose result is recorded when the value is dropped, even if its task panics or is
/// cancelled: otherwise no other refresh could ever start.
struct RunningRefresh {
    issuer: Arc<TrustedIssuer>,
    /// `None` once the result is recorded.
    operation: Option<Operation<(), RefreshResult>>,
    result: RefreshResult,
}

impl RunningRefresh {
    fn new(issuer: Arc<TrustedIssuer>, operation: Operation<(), RefreshResult>) -> Self {
        Self {
            issuer,
            operation: Some(operation),
            result: Err(RefreshError::Interrupted),
        }
    }

    async fn run(mut self) {
        self.result = self.issuer.fetch_all().await;
    }
}

impl Drop for RunningRefresh {
    fn drop(&mut self) {
        self.issuer.refresh_state.record(self.result.clone());
        if let Some(operation) = self.operation.take() {
            operation.complete(self.result.clone());
        }
    }
}

/// Refreshes the keys until the issuer is dropped: before they expire and, after failures, with
/// exponential backoff.
pub(super) async fn refresh_periodically(issuer: Weak<TrustedIssuer>) {
    let mut failures = 0_u32;
    loop {
        let Some(issuer) = issuer.upgrade() else {
            return;
        };
        let is_refreshed = issuer.refresh_now().await.is_ok();
        let is_working = issuer.probe_introspection().await;
        let delay = if is_refreshed && is_working {
            failures = 0;
            let keys = issuer.keys.current();
            schedule::refresh_delay(
                keys.as_ref()
                    .map_or(schedule::DEFAULT_MAX_AGE, |keys| keys.max_age()),
            )
        } else {
            failures = failures.saturating_add(1);
            schedule::retry_delay(failures, getrandom::u32().unwrap_or_default())
        };
        issuer
            .refresh_state
            .schedule(issuer.clock.monotonic().saturating_add(delay));
        // After a failure, the next probe follows soon anyway.
        let rejections = issuer
            .introspection
            .as_ref()
            .filter(|_| failures == 0)
            .map(|client| client.rejections());
        drop(issuer);
        match rejections {
            Some(rejections) => sleep_until_rejection(&rejections, delay).await,
            None => sleep(delay).await,
        }
    }
}

/// Sleeps for `delay`, or until a call is rejected. Rejected calls cause at most one probe per
/// [`MIN_PROBE_INTERVAL`].
async fn sleep_until_rejection(rejections: &Notify, delay: Duration) {
    let started = Instant::now();
    if timeout(delay, rejections.notified()).await.is_ok() {
        sleep_until(started + MIN_PROBE_INTERVAL.min(delay)).await;
    }
}

/// Returns the last cause of an error, which is the most specific one. `None` if the message says
/// everything.
fn last_cause(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut last = error.source()?;
    while let Some(cause) = last.source() {
        last = cause;
    }
    Some(EscapedText::first(&last.to_string(), MAX_CAUSE).to_string())
}
