use std::sync::Mutex;

use portcullis_discovery::{BoxFuture, FetchError, FetchRequest, FetchResponse};
use portcullis_jose::Algorithm;
use portcullis_metadata::AccessToken;
use portcullis_testkit::{FakeIssuer, Forge};
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use super::*;
use crate::{
    Validation,
    testing::{Bench, ISSUER, all, settle, trusted, verifier_of},
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// As many good tokens that differ, their keys held by nobody.
fn unknown_kids(bench: &Bench, count: usize) -> Vec<String> {
    (0..count).map(|at| bench.forge.token().kid(&format!("made-up-{at}")).sign()).collect()
}

async fn verify_all(bench: &Bench, tokens: Vec<String>) -> Vec<Result<(), &'static str>> {
    all(tokens.into_iter().map(|token| {
        let verifier = Arc::clone(&bench.verifier);
        async move { verifier.verify(&AccessToken::new(token)).await.map(|_| ()).map_err(|error| error.code()) }
    }))
    .await
}

fn fails(bench: &Bench) {
    bench.fake.fail(bench.forge.metadata_url());
    bench.fake.fail(bench.forge.endpoint("jwks"));
}

/// C10: without a word from anybody, keys are found by the issuer's metadata and fetched when the first token comes.
#[tokio::test(start_paused = true)]
async fn the_first_token_fetches_the_keys() {
    let bench = Bench::new();
    assert_eq!(bench.issuer.health(), IssuerHealth::NotYet);
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    assert_eq!(bench.fake.urls(), [bench.forge.metadata_url(), bench.forge.endpoint("jwks")]);
    assert_eq!(bench.issuer.health(), IssuerHealth::Usable { keys: 1, age: Duration::ZERO });
}

/// C10: an issuer that is down at start makes its tokens unjudged, with a time to come back at, and nothing worse;
/// once it is up, the next token after the cooldown is accepted.
#[tokio::test(start_paused = true)]
async fn down_at_start_and_later_up() {
    let bench = Bench::new();
    fails(&bench);
    let token = AccessToken::new(bench.forge.token().sign());
    let error = bench.verifier.verify(&token).await.unwrap_err();
    assert_eq!(error.code(), "issuer.unavailable");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(bench.issuer.health(), IssuerHealth::Failed { reason: "fetch.connect" });

    bench.fake.publish(&bench.forge);
    bench.pass(10).await;
    let error = bench.verifier.verify(&token).await.unwrap_err();
    assert_eq!((error.code(), error.retry_after()), ("issuer.unavailable", Some(Duration::from_secs(20))));
    bench.pass(20).await;
    assert!(bench.verifier.verify(&token).await.is_ok());
}

/// C10: the cooldown holds when no keys were ever fetched, too: a flood on a dead issuer asks it once.
#[tokio::test(start_paused = true)]
async fn a_dead_issuer_is_not_hammered() {
    let bench = Bench::new();
    fails(&bench);
    for _ in 0..3 {
        let results = verify_all(&bench, unknown_kids(&bench, 20)).await;
        assert!(results.iter().all(|result| *result == Err("issuer.unavailable")));
    }
    assert_eq!(bench.fake.urls().len(), 1);
}

/// C10: the background refresh asks at once, backs off while the issuer is down, and finds it when it is up.
#[tokio::test(start_paused = true)]
async fn the_background_refresh_outlasts_an_outage() {
    let bench = Bench::new();
    fails(&bench);
    bench.issuer.spawn_refresh();
    bench.issuer.spawn_refresh();
    settle().await;
    assert_eq!(bench.fake.urls().len(), 1);
    for second in 0..10 * MINUTE {
        bench.pass(1).await;
        assert!(bench.fake.urls().len() <= 2 + second as usize);
    }
    let tries = bench.fake.urls().len();
    assert!((10..=25).contains(&tries), "{tries} tries in 10 minutes");

    bench.fake.publish(&bench.forge);
    bench.pass(MINUTE).await;
    assert!(bench.issuer.health().is_usable());
}

/// C10: fresh keys are fetched again ahead of their age, so that they never look stale.
#[tokio::test(start_paused = true)]
async fn the_background_refresh_keeps_keys_fresh() {
    let bench = Bench::new();
    bench.issuer.spawn_refresh();
    settle().await;
    assert_eq!(bench.hits(), 1);
    for _ in 0..60 {
        bench.pass(MINUTE).await;
        assert!(matches!(bench.issuer.health(), IssuerHealth::Usable { .. }), "{:?}", bench.issuer.health());
    }
    assert_eq!(bench.hits(), 7, "one every 9 minutes in an hour");
}

/// C10: the response's own max-age decides how long its keys are fresh.
#[tokio::test(start_paused = true)]
async fn max_age_of_the_response_counts() {
    let bench = Bench::new();
    let body = bench.forge.jwks_json();
    bench.fake.answer(bench.forge.endpoint("jwks"), move |_| {
        let headers = [(http::header::CACHE_CONTROL, http::HeaderValue::from_static("public, max-age=3600"))];
        let body = body.clone().into();
        Ok(FetchResponse { status: http::StatusCode::OK, headers: headers.into_iter().collect(), body })
    });
    bench.issuer.refresh_now().await.unwrap();
    bench.clock.advance(Duration::from_secs(HOUR));
    assert!(matches!(bench.issuer.health(), IssuerHealth::Usable { .. }));
    bench.clock.advance(Duration::from_secs(1));
    assert!(matches!(bench.issuer.health(), IssuerHealth::Stale { .. }));
}

/// C10: the background refresh ends with the issuer.
#[tokio::test(start_paused = true)]
async fn a_dropped_issuer_is_asked_no_more() {
    let Bench { fake, forge, issuer, verifier, .. } = Bench::new();
    issuer.spawn_refresh();
    settle().await;
    drop((issuer, verifier));
    tokio::time::advance(Duration::from_secs(HOUR)).await;
    settle().await;
    assert_eq!(fake.hits(forge.endpoint("jwks")), 1);
}

/// C10: many callers with many unknown keys cause one fetch, and all of them are answered by it.
#[tokio::test(start_paused = true)]
async fn one_fetch_for_all_callers() {
    let bench = Bench::new();
    let gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    let tokens: Vec<String> = (0..200).map(|_| bench.forge.token().sign()).chain(unknown_kids(&bench, 200)).collect();
    let release = async {
        gate.reached().await;
        settle().await;
        gate.release();
    };
    let (results, ()) = tokio::join!(verify_all(&bench, tokens), release);
    assert!(results[..200].iter().all(Result::is_ok));
    assert!(results[200..].iter().all(|result| *result == Err("token.key_unknown")));
    assert_eq!(bench.hits(), 1);
}

/// C10: a flood of made-up keys causes one fetch a cooldown; within it they are refused at once, not as unavailable.
#[tokio::test(start_paused = true)]
async fn a_flood_causes_one_fetch_a_cooldown() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    for round in 1..=3 {
        for _ in 0..5 {
            let results = verify_all(&bench, unknown_kids(&bench, 50)).await;
            assert!(results.iter().all(|result| *result == Err("token.key_unknown")));
        }
        assert_eq!(bench.hits(), 1 + round);
        bench.pass(29).await;
        assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("token.key_unknown"));
        assert_eq!(bench.hits(), 1 + round);
        bench.pass(1).await;
    }
}

/// C10: a failed attempt in the cooldown leaves it open whether a key is published: unavailable, not unknown.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_in_an_outage_is_not_judged() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    fails(&bench);
    for _ in 0..2 {
        assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("issuer.unavailable"));
    }
    assert_eq!(bench.hits(), 2);
    // The keys that are held serve on.
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
}

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

/// C10, C11: withdrawn keys take everything they verified out of memory; an unchanged set in another order takes
/// nothing.
#[tokio::test(start_paused = true)]
async fn withdrawn_keys_empty_the_memory() {
    let bench = Bench::with(|settings| {
        settings.algorithms = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
    });
    let (rsa, ec) = (bench.forge.key(), bench.forge.key_for(Algorithm::Es256));
    let publish = |keys: &[&_]| bench.fake.serve(bench.forge.endpoint("jwks"), 200, Forge::jwks_of(keys));
    publish(&[&rsa, &ec]);
    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    assert!(bench.verifier.cached(&token).is_some());

    publish(&[&ec, &rsa]);
    bench.issuer.refresh_now().await.unwrap();
    assert!(bench.verifier.cached(&token).is_some());

    publish(&[&ec]);
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.verifier.remembered(), 1);
    assert!(bench.verifier.cached(&token).is_none());
    assert_eq!(bench.verifier.remembered(), 0);
    assert_eq!(bench.refusal(&token).await, Some("token.key_unknown"));
}

/// C10, C11: other key material under the same key identifier is a changed set.
#[tokio::test(start_paused = true)]
async fn changed_material_empties_the_memory() {
    let bench = Bench::new();
    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    let impostor = Forge::new("https://other.example");
    assert_eq!(impostor.key().kid(), bench.forge.key().kid());
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, impostor.jwks_json());
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token).await, Some("token.signature"));
}

/// C10: an issuer that withdraws all its keys has none: not even the last ones serve on.
#[tokio::test(start_paused = true)]
async fn an_empty_set_is_taken() {
    let bench = Bench::new();
    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, r#"{"keys":[]}"#);
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.issuer.health(), IssuerHealth::Failed { reason: "issuer.no_usable_key" });
    bench.pass(30).await;
    assert_eq!(bench.refusal(&token).await, Some("token.key_unknown"));
}

/// C10: a slow issuer holds a caller for 5 s and no longer; what it answers in the end serves the next.
#[tokio::test(start_paused = true)]
async fn a_slow_issuer_holds_callers_for_one_deadline() {
    let bench = Bench::new();
    let gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    let token = bench.forge.token().sign();
    let started = Instant::now();
    assert_eq!(bench.refusal(&token).await, Some("issuer.unavailable"));
    assert_eq!(started.elapsed().as_secs(), 5);
    gate.release();
    settle().await;
    assert_eq!(bench.refusal(&token).await, None);
    assert_eq!(bench.hits(), 1);
}

/// C10: an issuer that never answers does not hold the one refresh for ever.
#[tokio::test(start_paused = true)]
async fn a_hanging_issuer_is_given_up() {
    let bench = Bench::new();
    let _gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    let started = Instant::now();
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "issuer.timeout");
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(bench.issuer.health(), IssuerHealth::Failed { reason: "issuer.timeout" });
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

/// C10: garbage, errors and redirects in place of keys are failures with a name, and the held keys serve on.
#[tokio::test(start_paused = true)]
async fn garbage_evicts_nothing() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    for (status, body, code) in [
        (200, "", "document.not_json"),
        (200, "<html>", "document.not_json"),
        (200, "[]", "document.not_an_object"),
        (200, "{}", "document.member_missing"),
        (200, r#"{"keys":{}}"#, "document.member_type"),
        (404, r#"{"keys":[]}"#, "issuer.keys_status"),
        (302, "", "issuer.keys_status"),
        (500, "", "issuer.keys_status"),
        (204, "", "issuer.keys_status"),
    ] {
        bench.fake.serve(bench.forge.endpoint("jwks"), status, body);
        assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), code, "{status} {body}");
        assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None, "{status} {body}");
    }
    bench.fake.time_out(bench.forge.endpoint("jwks"));
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "fetch.timeout");
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
}

/// C10: a set over 100 keys or 256 KiB is not taken, the old one serves on; 100 keys are.
#[tokio::test(start_paused = true)]
async fn huge_sets_are_not_taken() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    let set = |count: usize, other: &str| {
        let others = vec![other; count - 1].join(",");
        format!(r#"{{"keys":[{},{others}]}}"#, bench.forge.key().public_jwk())
    };
    for (body, code) in [
        (set(101, r#"{"kty":"EC"}"#), "keys.too_many"),
        (set(101, "7"), "keys.too_many"),
        (set(10_000, r#"{"kty":"EC"}"#), "keys.too_many"),
        (set(2, &json!({ "kty": "EC", "x5t": "x".repeat(256 * 1024) }).to_string()), "fetch.too_large"),
    ] {
        bench.fake.serve(bench.forge.endpoint("jwks"), 200, body);
        assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), code);
        assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    }
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, set(100, r#"{"kty":"EC"}"#));
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
}

/// C10: stale keys serve while the issuer is down, up to `max_stale` past their age, and no longer.
#[tokio::test(start_paused = true)]
async fn stale_keys_serve_for_a_day() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    fails(&bench);
    bench.pass(10 * MINUTE + 1).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    settle().await;
    let age = Duration::from_secs(10 * MINUTE + 1);
    assert_eq!(bench.issuer.health(), IssuerHealth::Stale { keys: 1, age, reason: Some("fetch.connect") });
    bench.pass(24 * HOUR - 1).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    bench.pass(1).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, Some("issuer.unavailable"));
    assert_eq!(bench.issuer.health(), IssuerHealth::Failed { reason: "fetch.connect" });
    bench.fake.publish(&bench.forge);
    bench.pass(30).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
}

/// C10: how long stale keys serve can be set.
#[tokio::test(start_paused = true)]
async fn stale_serving_can_be_bounded() {
    let bench = Bench::with(|settings| settings.max_stale = Duration::ZERO);
    bench.issuer.refresh_now().await.unwrap();
    fails(&bench);
    bench.pass(10 * MINUTE).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    bench.pass(1).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, Some("issuer.unavailable"));
}

/// C10: without a background refresh, a token that meets aged keys has them fetched, and does not wait for it.
#[tokio::test(start_paused = true)]
async fn aged_keys_are_fetched_behind_the_tokens_back() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    bench.pass(10 * MINUTE + 1).await;
    let gate = bench.fake.hang(bench.forge.endpoint("jwks"));
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    gate.reached().await;
    gate.release();
    settle().await;
    assert!(matches!(bench.issuer.health(), IssuerHealth::Usable { .. }));
}

/// C10: an issuer's metadata is asked once, and again after a failure: the keys may have moved.
#[tokio::test(start_paused = true)]
async fn keys_that_moved_are_found_again() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!((bench.fake.hits(bench.forge.metadata_url()), bench.hits()), (1, 2));

    let moved = bench.forge.metadata_json().replace("/jwks", "/keys");
    bench.fake.serve(bench.forge.metadata_url(), 200, moved);
    bench.fake.serve(bench.forge.endpoint("jwks"), 410, "");
    bench.fake.serve(bench.forge.endpoint("keys"), 200, bench.forge.jwks_json());
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "issuer.keys_status");
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.fake.hits(bench.forge.endpoint("keys")), 1);

    bench.clock.advance(Duration::from_secs(HOUR));
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.fake.hits(bench.forge.metadata_url()), 3);
}

/// C10: metadata of another issuer, or without `jwks_uri`, or with one that is not safe, gives no keys.
#[tokio::test(start_paused = true)]
async fn unusable_metadata_gives_no_keys() {
    let bench = Bench::new();
    let with = |name: &str, value: serde_json::Value| {
        let mut metadata: serde_json::Value = serde_json::from_str(&bench.forge.metadata_json()).unwrap();
        metadata[name] = value;
        bench.fake.serve(bench.forge.metadata_url(), 200, metadata.to_string());
    };
    with("issuer", json!("https://issuer.example/"));
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "discovery.issuer_mismatch");
    with("jwks_uri", json!(null));
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "issuer.no_jwks_uri");
    with("jwks_uri", json!("http://issuer.example/jwks"));
    assert_eq!(bench.issuer.refresh_now().await.unwrap_err().code(), "fetch.refused.scheme");
    assert_eq!(bench.hits(), 0);
}

/// C10: a configured address is used without asking for metadata; given keys without asking for anything.
#[tokio::test(start_paused = true)]
async fn keys_can_be_configured() {
    let address = |bench: &Bench| bench.forge.endpoint("certs");
    let bench =
        Bench::with(|settings| settings.keys = KeySource::Uri(Url::parse("https://issuer.example/certs").unwrap()));
    bench.fake.serve(address(&bench), 200, bench.forge.jwks_json());
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    assert_eq!(bench.fake.urls(), [address(&bench)]);

    let jwks = JwkSet::parse(bench.forge.jwks_json().as_bytes()).unwrap();
    let bench = Bench::with(|settings| settings.keys = KeySource::Fixed(jwks));
    bench.issuer.spawn_refresh();
    bench.issuer.refresh_now().await.unwrap();
    bench.pass(365 * 24 * HOUR).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("token.key_unknown"));
    assert!(bench.issuer.health().is_usable());
    assert!(bench.fake.urls().is_empty());
}

/// C1: settings that cannot be used are refused with a name and a fix, introspection among them until it exists.
#[tokio::test]
async fn unusable_settings_are_refused() {
    let refusal = |change: fn(&mut IssuerSettings)| {
        let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
        change(&mut settings);
        let clock = Arc::new(portcullis_testkit::ManualClock::new());
        let error = TrustedIssuer::new(settings, Arc::new(FakeIssuer::new()), clock, Handle::current()).unwrap_err();
        assert!(error.to_string().contains(ISSUER), "{error}");
        error.code()
    };
    assert_eq!(refusal(|s| s.validation = Validation::Introspection), "settings.introspection_not_available");
    assert_eq!(refusal(|s| s.validation = Validation::JwtAndIntrospection), "settings.introspection_not_available");
    assert_eq!(refusal(|s| s.algorithms = portcullis_jose::AlgorithmSet::EMPTY), "settings.no_algorithm");
    assert_eq!(refusal(|s| s.leeway = Duration::from_millis(60_001)), "settings.leeway_too_long");
    assert_eq!(refusal(|s| s.cooldown = Duration::from_millis(999)), "settings.cooldown_too_short");
    assert_eq!(refusal(|s| s.keys = KeySource::Fixed(JwkSet::default())), "settings.no_usable_key");
    for uri in ["http://issuer.example/jwks", "ftp://issuer.example/jwks", "https://u:p@issuer.example/jwks"] {
        let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
        settings.keys = KeySource::Uri(Url::parse(uri).unwrap());
        assert_eq!(settings.check().unwrap_err().code(), "settings.jwks_uri", "{uri}");
    }
}

/// Notes on which runtime it is asked.
#[derive(Clone)]
struct Whereabouts(FakeIssuer, Arc<Mutex<Vec<tokio::runtime::Id>>>);

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
    let forge = Forge::new(ISSUER);
    let whereabouts = Whereabouts(FakeIssuer::new(), Arc::default());
    whereabouts.0.publish(&forge);
    let clock = portcullis_testkit::ManualClock::new();
    let issuer = trusted(IssuerSettings::new(forge.issuer().clone()), &whereabouts, &clock, control.handle().clone());
    let verifier = verifier_of(Forge::RESOURCE, vec![issuer], &clock);
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
