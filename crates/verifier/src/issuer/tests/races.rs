//! Who runs where, and what may happen in between.

use std::sync::Mutex;

use portcullis_discovery::{BoxFuture, FetchError, FetchRequest, FetchResponse};
use portcullis_metadata::UnixTime;
use portcullis_testkit::{ManualClock, ScriptedFetch};

use super::*;
use crate::{
    Verifier, VerifierSettings,
    testing::{ISSUER, trusted, verifier_of},
};

/// C10: a rotated key is found by the first token that names it, and the withdrawn one verifies nothing more.
#[tokio::test(start_paused = true)]
async fn rotation_is_followed_at_once() {
    let bench = Bench::new();
    let old = bench.forge.token().sign();
    assert_eq!(bench.refusal(&old).await, None);
    bench.pass(31).await;
    let old_key = bench.forge.key();
    bench.forge.rotate();
    bench.fake.publish(&bench.forge);
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    assert_eq!(bench.hits(), 2);
    assert_eq!(bench.refusal(&old).await, Some("token.key_unknown"));
    assert_eq!(bench.refusal(&bench.forge.token().signed_by(old_key).sign()).await, Some("token.key_unknown"));
    assert_eq!(bench.hits(), 2);
}

/// C10: a caller that goes away takes nothing from the others: the refresh it started runs on.
#[tokio::test(start_paused = true)]
async fn a_refresh_outlives_who_started_it() {
    let bench = Bench::new();
    let gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    let (verifier, token) = (Arc::clone(&bench.verifier), bench.forge.token().sign());
    let caller = tokio::spawn(async move { verifier.verify(&AccessToken::new(token)).await });
    gate.reached().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    gate.release();
    settle().await;
    assert!(bench.issuer.health().is_usable());
}

/// Notes on which runtime it is asked.
#[derive(Clone)]
struct Whereabouts(ScriptedFetch, Arc<Mutex<Vec<tokio::runtime::Id>>>);

impl Fetch for Whereabouts {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.1.lock().unwrap().push(Handle::current().id());
        self.0.fetch(request)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

/// C10: fetches run on the control runtime, whoever waits for them.
#[test]
fn fetches_run_on_the_control_runtime() {
    let (control, worker) = (runtime(), runtime());
    let forge = TestIssuer::new(ISSUER);
    let whereabouts = Whereabouts(ScriptedFetch::new(), Arc::default());
    whereabouts.0.publish(&forge);
    let clock = ManualClock::new();
    let issuer = trusted(IssuerSettings::new(forge.issuer().clone()), &whereabouts, &clock, control.handle().clone());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![issuer], &clock);
    worker.block_on(verifier.verify(&AccessToken::new(forge.token().sign()))).unwrap();
    assert_eq!(*whereabouts.1.lock().unwrap(), [control.handle().id(), control.handle().id()]);
}

/// C10: when the control runtime is gone, as in a shutdown, callers get an answer and do not hang.
#[test]
fn a_control_runtime_that_is_gone_is_an_outage() {
    let (control, worker) = (runtime(), runtime());
    let bench = Bench::on(control.handle().clone(), |_| ());
    drop(control);
    for _ in 0..2 {
        assert_eq!(worker.block_on(bench.refusal(&bench.forge.token().sign())), Some("issuer.unavailable"));
    }
}

/// A clock that lets something happen the moment it is read for the given time: what another thread may do then.
#[derive(Default)]
struct MeddlingClock(ManualClock, Mutex<Option<Plan>>);

/// After how many readings, and what.
type Plan = (usize, Box<dyn FnOnce() + Send>);

impl MeddlingClock {
    fn at_reading(&self, reading: usize, act: impl FnOnce() + Send + 'static) {
        *self.1.lock().unwrap() = Some((reading, Box::new(act)));
    }

    fn read(&self) {
        let due = {
            let mut plan = self.1.lock().unwrap();
            if let Some((readings, _)) = plan.as_mut() {
                *readings -= 1;
            }
            plan.take_if(|(readings, _)| *readings == 0)
        };
        if let Some((_, act)) = due {
            act();
        }
    }
}

impl Clock for MeddlingClock {
    fn now(&self) -> UnixTime {
        self.read();
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.read();
        self.0.monotonic()
    }
}

/// Lets the issuer go over to the forge's next key, as a refresh does that lands just now.
fn rotation(issuer: &Arc<TrustedIssuer>, forge: &TestIssuer) -> impl FnOnce() + Send + 'static {
    forge.rotate();
    let published = JwkSet::parse(forge.jwks_json().as_bytes()).unwrap();
    let issuer = Arc::clone(issuer);
    move || {
        let fetched = Duration::from_secs(HOUR);
        assert!(
            issuer.keys.install(published, issuer.settings.algorithms, fetched, schedule::DEFAULT_MAX_AGE).unwrap()
        );
    }
}

/// A verifier for the bench's issuer, with a clock of its own that meddles.
fn meddled_with(bench: &Bench) -> (Arc<Verifier>, Arc<MeddlingClock>) {
    let clock = Arc::new(MeddlingClock::default());
    let settings = VerifierSettings::new(bench.verifier.resource().clone());
    (Verifier::new(settings, vec![Arc::clone(&bench.issuer)], clock.clone()).unwrap(), clock)
}

/// C11: when the keys change while a token is verified with the old ones, it is not remembered under the new ones.
#[tokio::test(start_paused = true)]
async fn a_verification_under_way_does_not_slip_in_late() {
    let bench = Bench::new();
    let (verifier, clock) = meddled_with(&bench);
    let token = bench.forge.token().sign();
    // Two readings for the lookup; the third, of a token that waited for the keys, judges the claims, after the
    // signature.
    clock.at_reading(3, rotation(&bench.issuer, &bench.forge));
    verifier.verify(&AccessToken::new(token.as_str())).await.unwrap();
    assert_eq!(bench.issuer.generation(), 2, "the keys have changed");
    assert_eq!(verifier.cached_tokens(), 0);
    assert!(verifier.cached(&token).is_none());
    bench.fake.publish(&bench.forge);
    assert_eq!(bench.refusal(&token).await, Some("token.key_unknown"));
}

/// C7: a token that waited for the keys is judged by the time at which they came: it may have expired meanwhile.
#[tokio::test(start_paused = true)]
async fn a_token_that_expires_while_it_waits_is_refused() {
    let bench = Bench::new();
    let gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    let token = bench.forge.token().expires_in(0).sign();
    let meanwhile = async {
        gate.reached().await;
        bench.clock.advance(Duration::from_secs(10));
        gate.release();
    };
    let (refusal, ()) = tokio::join!(bench.refusal(&token), meanwhile);
    assert_eq!(refusal, Some("token.expired"));
}

/// C7: one that waits for nothing is judged by the time at which it came, without another reading of the clock.
#[tokio::test(start_paused = true)]
async fn a_token_that_waits_for_nothing_is_judged_as_it_came() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    let (verifier, clock) = meddled_with(&bench);
    clock.at_reading(3, || panic!("the clock is read again"));
    verifier.verify(&AccessToken::new(bench.forge.token().sign())).await.unwrap();
}

/// C10: a refresh that lands between a caller's look at the keys and its wish for younger ones serves that caller, in
/// the cooldown too.
#[tokio::test(start_paused = true)]
async fn keys_that_land_meanwhile_are_used() {
    let bench = Bench::new();
    let clock = Arc::new(MeddlingClock::default());
    let fetch = Arc::new(bench.fake.clone());
    let settings = IssuerSettings::new(bench.forge.issuer().clone());
    let issuer = TrustedIssuer::new(settings, fetch, clock.clone(), Handle::current()).unwrap();
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&issuer)], &bench.clock);
    verifier.verify(&AccessToken::new(bench.forge.token().sign())).await.unwrap();
    let rotation = rotation(&issuer, &bench.forge);
    // One reading for the look at the keys, the second for the cooldown.
    clock.at_reading(2, rotation);
    verifier.verify(&AccessToken::new(bench.forge.token().sign())).await.unwrap();
    assert_eq!(bench.hits(), 1);
}
