//! Rotations, cancellations and outages while requests wait for keys.

use parking_lot::Mutex;
use portcullis_discovery::{BoxFuture, FetchError, FetchRequest, FetchResponse};
use portcullis_metadata::UnixTime;
use portcullis_testkit::{ManualClock, ScriptedFetch};

use super::*;
use crate::{
    Verifier, VerifierSettings,
    testing::{ISSUER, trusted, verifier_of},
};

/// C10: the first token that names a new key causes its fetch, and a removed key verifies no
/// further token.
#[tokio::test(start_paused = true)]
async fn rotation_takes_effect_immediately() {
    let fixture = Fixture::new();
    let old = fixture.test_issuer.token().sign();
    assert_eq!(fixture.rejection(&old).await, None);
    fixture.pass(31).await;
    let old_key = fixture.test_issuer.key();
    fixture.test_issuer.rotate();
    fixture.fake.publish(&fixture.test_issuer);
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    assert_eq!(fixture.hits(), 2);
    assert_eq!(fixture.rejection(&old).await, Some("token.key_unknown"));
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().signed_by(old_key).sign())
            .await,
        Some("token.key_unknown")
    );
    assert_eq!(fixture.hits(), 2);
}

/// C10: if the request that started a refresh is cancelled, the refresh continues for the others.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_cancel_the_refresh() {
    let fixture = Fixture::new();
    let gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let verifier = Arc::clone(&fixture.verifier);
    let token = fixture.test_issuer.token().sign();
    let caller = tokio::spawn(async move { verifier.verify(&AccessToken::new(token)).await });
    gate.reached().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    gate.release();
    settle().await;
    assert!(fixture.issuer.health().is_usable());
}

/// Records the runtime of each fetch.
#[derive(Clone)]
struct RecordingFetch {
    fetch: ScriptedFetch,
    runtimes: Arc<Mutex<Vec<tokio::runtime::Id>>>,
}

impl Fetch for RecordingFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.runtimes.lock().push(Handle::current().id());
        self.fetch.fetch(request)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
}

/// C10: fetches run on the control runtime.
#[test]
fn fetches_run_on_the_control_runtime() {
    let control = runtime();
    let worker = runtime();
    let test_issuer = TestIssuer::new(ISSUER);
    let recording = RecordingFetch {
        fetch: ScriptedFetch::new(),
        runtimes: Arc::default(),
    };
    recording.fetch.publish(&test_issuer);
    let clock = ManualClock::new();
    let issuer = trusted(
        IssuerSettings::new(test_issuer.issuer().clone()),
        &recording,
        &clock,
        control.handle().clone(),
    );
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![issuer], &clock);
    worker
        .block_on(verifier.verify(&AccessToken::new(test_issuer.token().sign())))
        .unwrap();
    assert_eq!(
        *recording.runtimes.lock(),
        [control.handle().id(), control.handle().id()]
    );
}

/// C10: after the control runtime was shut down, requests fail without delay.
#[test]
fn a_stopped_control_runtime_is_an_outage() {
    let control = runtime();
    let worker = runtime();
    let fixture = Fixture::on(control.handle().clone(), |_| ());
    drop(control);
    for _ in 0..2 {
        assert_eq!(
            worker.block_on(fixture.rejection(&fixture.test_issuer.token().sign())),
            Some("issuer.unavailable")
        );
    }
}

/// A clock that runs an action at its nth reading, as another thread could.
#[derive(Default)]
struct ActingClock {
    clock: ManualClock,
    plan: Mutex<Option<Plan>>,
}

/// An action, and the number of readings until it runs.
struct Plan {
    readings: usize,
    act: Box<dyn FnOnce() + Send>,
}

impl ActingClock {
    /// Plans an action at the nth reading from now on.
    fn at_reading(&self, readings: usize, act: impl FnOnce() + Send + 'static) {
        *self.plan.lock() = Some(Plan {
            readings,
            act: Box::new(act),
        });
    }

    /// Counts a reading of the clock, and acts at the planned one.
    fn read(&self) {
        let due = {
            let mut plan = self.plan.lock();
            if let Some(plan) = plan.as_mut() {
                plan.readings -= 1;
            }
            plan.take_if(|plan| plan.readings == 0)
        };
        if let Some(Plan { act, .. }) = due {
            act();
        }
    }
}

impl Clock for ActingClock {
    fn now(&self) -> UnixTime {
        self.read();
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.read();
        self.clock.monotonic()
    }
}

/// Returns an action that installs the test issuer's next key, as a refresh would.
fn rotation(
    issuer: &Arc<TrustedIssuer>,
    test_issuer: &TestIssuer,
) -> impl FnOnce() + Send + 'static {
    test_issuer.rotate();
    let published = JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap();
    let issuer = Arc::clone(issuer);
    move || {
        let fetched = Duration::from_secs(HOUR);
        assert!(
            issuer
                .keys
                .install(
                    published,
                    issuer.settings.algorithms,
                    fetched,
                    schedule::DEFAULT_MAX_AGE
                )
                .unwrap()
        );
    }
}

/// Returns a verifier for the fixture's issuer with a clock that runs an action.
fn verifier_with_acting_clock(fixture: &Fixture) -> (Arc<Verifier>, Arc<ActingClock>) {
    let clock = Arc::new(ActingClock::default());
    let settings = VerifierSettings::new(fixture.verifier.resource().clone());
    (
        Verifier::new(settings, vec![Arc::clone(&fixture.issuer)], clock.clone()).unwrap(),
        clock,
    )
}

/// C11: if the keys change during a verification, the token is not cached under the new keys.
#[tokio::test(start_paused = true)]
async fn a_running_verification_is_not_cached_under_new_keys() {
    let fixture = Fixture::new();
    let (verifier, clock) = verifier_with_acting_clock(&fixture);
    let token = fixture.test_issuer.token().sign();
    // Two readings for the lookup. The third one, for a token that waited for the keys, validates
    // the claims, after the signature.
    clock.at_reading(3, rotation(&fixture.issuer, &fixture.test_issuer));
    verifier
        .verify(&AccessToken::new(token.as_str()))
        .await
        .unwrap();
    assert_eq!(fixture.issuer.generation(), 2, "the keys have changed");
    assert_eq!(verifier.cached_tokens(), 0);
    assert!(verifier.cached(&token).is_none());
    fixture.fake.publish(&fixture.test_issuer);
    assert_eq!(fixture.rejection(&token).await, Some("token.key_unknown"));
}

/// C7: a token that waits for keys is checked with the time after the wait.
#[tokio::test(start_paused = true)]
async fn a_token_that_expires_while_waiting_is_rejected() {
    let fixture = Fixture::new();
    let gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let token = fixture.test_issuer.token().expires_in(0).sign();
    let meanwhile = async {
        gate.reached().await;
        fixture.clock.advance(Duration::from_secs(10));
        gate.release();
    };
    let (rejection, ()) = tokio::join!(fixture.rejection(&token), meanwhile);
    assert_eq!(rejection, Some("token.expired"));
}

/// C7: a token that does not wait is checked with the time of its arrival, without another reading
/// of the clock.
#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_wait_reads_the_clock_once() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    let (verifier, clock) = verifier_with_acting_clock(&fixture);
    clock.at_reading(3, || panic!("the clock is read again"));
    verifier
        .verify(&AccessToken::new(fixture.test_issuer.token().sign()))
        .await
        .unwrap();
}

/// C10: a refresh that completes between the lookup of a key and the request for a refresh is used,
/// even during the cooldown.
#[tokio::test(start_paused = true)]
async fn keys_that_arrive_meanwhile_are_used() {
    let fixture = Fixture::new();
    let clock = Arc::new(ActingClock::default());
    let fetch = Arc::new(fixture.fake.clone());
    let settings = IssuerSettings::new(fixture.test_issuer.issuer().clone());
    let issuer = TrustedIssuer::new(settings, fetch, clock.clone(), Handle::current()).unwrap();
    let verifier = verifier_of(
        TestIssuer::RESOURCE,
        vec![Arc::clone(&issuer)],
        &fixture.clock,
    );
    verifier
        .verify(&AccessToken::new(fixture.test_issuer.token().sign()))
        .await
        .unwrap();
    let rotation = rotation(&issuer, &fixture.test_issuer);
    // One reading for the look at the keys, the second for the cooldown.
    clock.at_reading(2, rotation);
    verifier
        .verify(&AccessToken::new(fixture.test_issuer.token().sign()))
        .await
        .unwrap();
    assert_eq!(fixture.hits(), 1);
}
