use portcullis_jose::Algorithm;
use portcullis_metadata::AccessToken;
use portcullis_testkit::TestIssuer;
use tokio::time::Instant;

use super::*;
use crate::testing::{Bench, Logged, all, settle};

mod documents;
mod races;

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
    assert_eq!(bench.issuer.health(), IssuerHealth::Pending);
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

/// C10: the background refresh ends with the issuer.
#[tokio::test(start_paused = true)]
async fn a_dropped_issuer_is_asked_no_more() {
    let Bench { fake, forge, issuer, verifier, .. } = Bench::new();
    issuer.spawn_refresh();
    settle().await;
    drop((issuer, verifier));
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
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

/// C10: a flood delays a key that is really new by the cooldown, and no longer.
#[tokio::test(start_paused = true)]
async fn a_new_key_outlasts_a_flood() {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    verify_all(&bench, unknown_kids(&bench, 200)).await;
    assert_eq!(bench.hits(), 2);
    bench.forge.rotate();
    bench.fake.publish(&bench.forge);
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, Some("token.key_unknown"));
    verify_all(&bench, unknown_kids(&bench, 200)).await;
    assert_eq!(bench.hits(), 2);
    bench.pass(30).await;
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    assert_eq!(bench.hits(), 3);
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

/// C10: nor do keys that are past their age say which others are published, in a cooldown longer than that.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_beside_stale_ones_is_not_judged() {
    let bench = Bench::with(|settings| settings.cooldown = Duration::from_secs(HOUR));
    assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("token.key_unknown"));
    bench.pass(10 * MINUTE).await;
    assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("token.key_unknown"));
    bench.pass(1).await;
    assert_eq!(bench.refusal(&unknown_kids(&bench, 1)[0]).await, Some("issuer.unavailable"));
    assert_eq!(bench.hits(), 1);
}

/// C10, C11: withdrawn keys take everything they verified out of memory; an unchanged set in another order takes
/// nothing.
#[tokio::test(start_paused = true)]
async fn withdrawn_keys_empty_the_memory() {
    let bench = Bench::with(|settings| {
        settings.algorithms = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
    });
    let (rsa, ec) = (bench.forge.key(), bench.forge.key_for(Algorithm::Es256));
    let publish = |keys: &[&_]| bench.fake.serve(bench.forge.endpoint("jwks"), 200, TestIssuer::jwks_of(keys));
    publish(&[&rsa, &ec]);
    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    assert!(bench.verifier.cached(&token).is_some());

    publish(&[&ec, &rsa]);
    bench.issuer.refresh_now().await.unwrap();
    assert!(bench.verifier.cached(&token).is_some());

    publish(&[&ec]);
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.verifier.cached_tokens(), 1);
    assert!(bench.verifier.cached(&token).is_none());
    assert_eq!(bench.verifier.cached_tokens(), 0);
    assert_eq!(bench.refusal(&token).await, Some("token.key_unknown"));
}

/// C10, C11: other key material under the same key identifier is a changed set.
#[tokio::test(start_paused = true)]
async fn changed_material_empties_the_memory() {
    let bench = Bench::new();
    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    let impostor = TestIssuer::new("https://other.example");
    assert_eq!(impostor.key().kid(), bench.forge.key().kid());
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, impostor.jwks_json());
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token).await, Some("token.signature"));
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

/// An issuer shows its name and how it fares.
#[tokio::test]
async fn an_issuer_shows_its_health() {
    let shown = format!("{:?}", Bench::new().issuer);
    assert!(shown.starts_with("TrustedIssuer { issuer: ") && shown.contains("issuer.example"), "{shown}");
    assert!(shown.ends_with("health: Pending, .. }"), "{shown}");
}

/// C10, C3: the log tells which published key is refused, and which is not taken, and why.
#[tokio::test(start_paused = true)]
async fn the_log_tells_of_keys_that_are_not_taken() {
    let bench = Bench::new();
    let (log, _guard) = Logged::here();
    let ec = bench.forge.key_for(Algorithm::Es256);
    let mut jwks: serde_json::Value = serde_json::from_str(&TestIssuer::jwks_of(&[&bench.forge.key(), &ec])).unwrap();
    jwks["keys"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({ "kty": "RSA", "kid": "private", "n": "AQAB", "e": "AQAB", "d": "AQAB" }));
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, jwks.to_string());
    bench.issuer.refresh_now().await.unwrap();
    let lines = log.lines();
    let told = |parts: [&str; 3]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(told(["WARN ", "key.id=\"private\"", "key.failure=\"jwk.private\""]), "{lines:?}");
    let kid = format!("key.id={:?}", ec.kid());
    assert!(told(["DEBUG ", &kid, "key.failure=\"key.algorithm_not_allowed\""]), "{lines:?}");
}
