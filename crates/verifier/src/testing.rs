//! [`Fixture`]: one issuer, one resource and a manual clock, for tests.

use std::{
    fmt::{Debug, Write},
    future::Future,
    sync::{Arc, LazyLock},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_discovery::Fetch;
use portcullis_metadata::{AccessToken, ResourceUri};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use tokio::{runtime::Handle, task::yield_now};
use tracing::{Dispatch, Event, Metadata, Subscriber, field::Field, span, subscriber};

use crate::{IssuerSettings, TrustedIssuer, VerifiedToken, Verifier, VerifierSettings};

pub(crate) const ISSUER: &str = "https://issuer.example";

/// One issuer and one resource, with a network and a clock that the test controls.
pub(crate) struct Fixture {
    pub(crate) clock: ManualClock,
    pub(crate) test_issuer: TestIssuer,
    pub(crate) fake: ScriptedFetch,
    pub(crate) issuer: Arc<TrustedIssuer>,
    pub(crate) verifier: Arc<Verifier>,
}

impl Fixture {
    /// Returns an available issuer whose keys are not fetched yet.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// As [`new`](Self::new), with other settings of the issuer.
    pub(crate) fn with(change: impl FnOnce(&mut IssuerSettings)) -> Self {
        Self::on(Handle::current(), change)
    }

    /// As [`with`](Self::with), with fetches on this runtime.
    pub(crate) fn on(control: Handle, change: impl FnOnce(&mut IssuerSettings)) -> Self {
        let clock = ManualClock::new();
        let test_issuer = TestIssuer::new(ISSUER).with_clock(clock.clone());
        let fake = ScriptedFetch::new();
        fake.publish(&test_issuer);
        let mut settings = IssuerSettings::new(test_issuer.issuer().clone());
        change(&mut settings);
        let issuer = trusted(settings, &fake, &clock, control);
        let verifier = verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&issuer)], &clock);
        Self {
            clock,
            test_issuer,
            fake,
            issuer,
            verifier,
        }
    }

    /// Verifies a token. The error is the code of the rejection.
    pub(crate) async fn verify(&self, token: &str) -> Result<VerifiedToken, &'static str> {
        self.verifier
            .verify(&AccessToken::new(token))
            .await
            .map_err(|error| error.code())
    }

    /// Returns the code of the rejection of a token, or `None` if it is accepted.
    pub(crate) async fn rejection(&self, token: &str) -> Option<&'static str> {
        self.verify(token).await.err()
    }

    /// Returns how often the keys were fetched.
    pub(crate) fn hits(&self) -> usize {
        self.fake.hits(self.test_issuer.endpoint("jwks"))
    }

    /// Advances both clocks and runs the tasks that are due. The runtime's clock must be paused.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        tokio::time::advance(Duration::from_secs(seconds)).await;
        settle().await;
    }
}

pub(crate) fn trusted(
    settings: IssuerSettings,
    fetch: &(impl Fetch + Clone),
    clock: &ManualClock,
    control: Handle,
) -> Arc<TrustedIssuer> {
    TrustedIssuer::new(
        settings,
        Arc::new(fetch.clone()),
        Arc::new(clock.clone()),
        control,
    )
    .unwrap()
}

pub(crate) fn verifier_of(
    resource: &str,
    issuers: Vec<Arc<TrustedIssuer>>,
    clock: &ManualClock,
) -> Arc<Verifier> {
    let settings = VerifierSettings::new(ResourceUri::parse(resource).unwrap());
    Verifier::new(settings, issuers, Arc::new(clock.clone())).unwrap()
}

/// Lets the other tasks of this thread run for 50 turns, which is enough for the tasks of these
/// tests.
pub(crate) async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// Runs futures concurrently as tasks and returns their results in order.
pub(crate) async fn all<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = futures
        .into_iter()
        .map(|future| tokio::spawn(future))
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// The log of one thread: one line per event of these crates, starting with its level.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    /// Records the log of this thread until the guard is dropped.
    pub(crate) fn here() -> (Self, subscriber::DefaultGuard) {
        // While a single dispatcher exists, `tracing` asks only the thread that first reaches an
        // event whether it is enabled, and another test's thread would answer no for all. With two,
        // it asks every dispatcher.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Logged::default()));
        LazyLock::force(&SECOND);
        let logged = Self::default();
        (logged.clone(), subscriber::set_default(logged))
    }

    /// Returns the lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Subscriber for Logged {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("portcullis_")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            write!(line, " {field}={value:?}").unwrap()
        });
        self.0.lock().push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
