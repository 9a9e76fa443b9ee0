//! What the tests of verifier and issuer share: one issuer, one resource, a clock to turn.

use std::{
    fmt::{Debug, Write},
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use portcullis_discovery::Fetch;
use portcullis_metadata::{AccessToken, ResourceUri};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use tokio::{runtime::Handle, task::yield_now};
use tracing::{Event, Metadata, Subscriber, field::Field, span, subscriber};

use crate::{IssuerSettings, TrustedIssuer, VerifiedToken, Verifier, VerifierSettings};

pub(crate) const ISSUER: &str = "https://issuer.example";

pub(crate) struct Bench {
    pub(crate) clock: ManualClock,
    pub(crate) forge: TestIssuer,
    pub(crate) fake: ScriptedFetch,
    pub(crate) issuer: Arc<TrustedIssuer>,
    pub(crate) verifier: Arc<Verifier>,
}

impl Bench {
    /// An issuer that answers, whose keys nobody has asked for yet.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut IssuerSettings)) -> Self {
        Self::on(Handle::current(), change)
    }

    pub(crate) fn on(control: Handle, change: impl FnOnce(&mut IssuerSettings)) -> Self {
        let clock = ManualClock::new();
        let forge = TestIssuer::new(ISSUER).with_clock(clock.clone());
        let fake = ScriptedFetch::new();
        fake.publish(&forge);
        let mut settings = IssuerSettings::new(forge.issuer().clone());
        change(&mut settings);
        let issuer = trusted(settings, &fake, &clock, control);
        let verifier = verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&issuer)], &clock);
        Self { clock, forge, fake, issuer, verifier }
    }

    /// Verifies, and gives the code of a refusal.
    pub(crate) async fn verify(&self, token: &str) -> Result<VerifiedToken, &'static str> {
        self.verifier.verify(&AccessToken::new(token)).await.map_err(|error| error.code())
    }

    pub(crate) async fn refusal(&self, token: &str) -> Option<&'static str> {
        self.verify(token).await.err()
    }

    /// How often the keys were asked for.
    pub(crate) fn hits(&self) -> usize {
        self.fake.hits(self.forge.endpoint("jwks"))
    }

    /// Turns both clocks on and lets everything run that is due by then.
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
    TrustedIssuer::new(settings, Arc::new(fetch.clone()), Arc::new(clock.clone()), control).unwrap()
}

pub(crate) fn verifier_of(resource: &str, issuers: Vec<Arc<TrustedIssuer>>, clock: &ManualClock) -> Arc<Verifier> {
    let settings = VerifierSettings::new(ResourceUri::parse(resource).unwrap());
    Verifier::new(settings, issuers, Arc::new(clock.clone())).unwrap()
}

/// Lets the other tasks of this thread go as far as they get.
pub(crate) async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// Runs futures at the same time, as tasks, and gives their results in order.
pub(crate) async fn all<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = futures.into_iter().map(|future| tokio::spawn(future)).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// What this crate logs on one thread: an event a line, its level first.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    /// Notes what this thread logs from now on, until the guard is dropped.
    pub(crate) fn here() -> (Self, subscriber::DefaultGuard) {
        let logged = Self::default();
        (logged.clone(), subscriber::set_default(logged))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Logged {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("portcullis_verifier")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn Debug| write!(line, " {field}={value:?}").unwrap());
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
