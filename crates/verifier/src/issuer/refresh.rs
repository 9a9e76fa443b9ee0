//! How an issuer's keys, and the address to ask it at, are fetched: by one task at a time, whoever asked.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::TrustedIssuer;
use crate::{
    RefreshError,
    flight::{AskedBy, Boarding, Landed, Outcome},
    schedule,
    source::Fetched,
};

/// How long fetching the keys takes at most, discovery included.
const REFRESH_LIMIT: Duration = Duration::from_secs(10);
/// The shortest time between two tests of an introspection endpoint that rejected calls cause.
const TEST_PAUSE: Duration = Duration::from_secs(1);

impl TrustedIssuer {
    /// Starts a refresh on the control runtime, or joins the one under way. None in the cooldown, and where there is
    /// nothing to fetch.
    pub(super) fn refresh(self: &Arc<Self>, asked_by: AskedBy) -> Option<Landed> {
        if !self.has_refresh() {
            return None;
        }
        match self.flight.board(asked_by, self.clock.monotonic(), self.settings.cooldown) {
            Boarding::Join(landed) => Some(landed),
            Boarding::Cooling => None,
            Boarding::Start(sender, landed) => {
                let mut landing = Landing { issuer: Arc::clone(self), sender, outcome: None };
                self.control.spawn(async move {
                    let outcome = landing.issuer.fetch_all().await;
                    landing.record(outcome);
                });
                Some(landed)
            }
        }
    }

    /// Whether there is anything to fetch.
    pub(super) fn has_refresh(&self) -> bool {
        self.source.is_some() || self.introspection.as_ref().is_some_and(|asked| asked.is_discovered())
    }

    async fn fetch_all(&self) -> Outcome {
        match self.fetch_keys().await {
            // Both are found by the same metadata.
            Err(error @ RefreshError::Discovery(_)) => Err(error),
            keys => keys.and(self.find_endpoint().await),
        }
    }

    async fn find_endpoint(&self) -> Outcome {
        let Some(introspection) = &self.introspection else { return Ok(()) };
        introspection.find_endpoint().await.inspect_err(|error| {
            tracing::warn!(token.issuer = %self.settings.issuer, issuer.failure = error.code(), "cannot find where to introspect: {error}");
        })
    }

    /// Tests the introspection endpoint, if there is one. Gives whether it works.
    async fn test_introspection(&self) -> bool {
        match &self.introspection {
            Some(introspection) => introspection.probe().await.is_ok(),
            None => true,
        }
    }

    async fn fetch_keys(&self) -> Outcome {
        let Some(source) = &self.source else { return Ok(()) };
        let outcome = match timeout(REFRESH_LIMIT, source.fetch()).await {
            Ok(Ok(fetched)) => self.take_over(fetched),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(RefreshError::Timeout),
        };
        if let Err(error) = &outcome {
            tracing::warn!(token.issuer = %self.settings.issuer, issuer.failure = error.code(), "cannot fetch issuer keys: {error}");
        }
        outcome
    }

    fn take_over(&self, fetched: Fetched) -> Outcome {
        let now = self.clock.monotonic();
        if self.keys.install(fetched.keys, self.settings.algorithms, now, fetched.max_age)? {
            let keys = self.keys.held().as_ref().map_or(0, |held| held.set().len());
            tracing::info!(token.issuer = %self.settings.issuer, issuer.keys = keys, "issuer keys changed");
        }
        Ok(())
    }
}

/// Tells everybody who waits how a refresh ended, also when its task is dropped halfway or panics.
struct Landing {
    issuer: Arc<TrustedIssuer>,
    sender: watch::Sender<Option<Outcome>>,
    outcome: Option<Outcome>,
}

impl Landing {
    fn record(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or(Err(RefreshError::Interrupted));
        self.issuer.flight.land(outcome.clone());
        self.sender.send_replace(Some(outcome));
    }
}

pub(super) async fn outcome(mut landed: Landed) -> Outcome {
    match landed.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => outcome.clone(),
        Ok(None) | Err(_) => Err(RefreshError::Interrupted),
    }
}

pub(super) async fn keep_fresh(issuer: Weak<TrustedIssuer>) {
    let mut failures = 0_u32;
    loop {
        let Some(issuer) = issuer.upgrade() else { return };
        let refreshed = issuer.refresh_now().await.is_ok();
        let tested = issuer.test_introspection().await;
        let wait = if refreshed && tested {
            failures = 0;
            schedule::refresh_after(
                issuer.keys.held().as_ref().map_or(schedule::DEFAULT_MAX_AGE, |held| held.max_age()),
            )
        } else {
            failures = failures.saturating_add(1);
            schedule::retry_after(failures, getrandom::u32().unwrap_or_default())
        };
        issuer.flight.schedule(issuer.clock.monotonic().saturating_add(wait));
        // After a failure the next test is due soon anyway.
        let rejections =
            issuer.introspection.as_ref().filter(|_| failures == 0).map(|introspection| introspection.rejections());
        drop(issuer);
        match rejections {
            Some(rejections) => wait_for_rejection(&rejections, wait).await,
            None => sleep(wait).await,
        }
    }
}

/// Waits, and no longer than until a call was rejected. Rejected calls cause one test in [`TEST_PAUSE`].
async fn wait_for_rejection(rejections: &Notify, wait: Duration) {
    let started = Instant::now();
    if timeout(wait, rejections.notified()).await.is_ok() {
        sleep_until(started + TEST_PAUSE.min(wait)).await;
    }
}
