//! Tests of rechecks.

use portcullis_metadata::{Issuer, ResourceUri, Secret};
use portcullis_testkit::{ManualClock, TestIssuer};
use serde_json::{Value, json};

use super::*;
use crate::{
    IntrospectionSettings, Validation,
    testing::{Bench, settle, verifier_of},
};

const TOKEN: &str = "opaque-canary";
const INTERVAL: u64 = 10;

fn settings() -> IntrospectionSettings {
    IntrospectionSettings {
        client_secret: Some(Secret::new("hush")),
        cache_lifetime: Duration::from_secs(INTERVAL),
        ..IntrospectionSettings::new("portcullis")
    }
}

/// Returns a bench whose issuer introspects all tokens as active.
async fn bench_with(change: impl FnOnce(&mut IntrospectionSettings)) -> Bench {
    let mut settings = settings();
    change(&mut settings);
    let bench = Bench::with(|issuer| issuer.validation = Validation::Introspection(settings));
    says(&bench, &active());
    bench.issuer.refresh_now().await.unwrap();
    bench
}

async fn bench() -> Bench {
    bench_with(|_| ()).await
}

fn active() -> Value {
    json!({ "active": true, "aud": TestIssuer::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "a b" })
}

fn with(member: &str, value: impl Into<Value>) -> Value {
    let mut answer = active();
    answer[member] = value.into();
    answer
}

fn says(bench: &Bench, answer: &Value) {
    bench.fake.serve(bench.test_issuer.endpoint("introspect"), 200, answer.to_string());
}

fn fails(bench: &Bench) {
    bench.fake.serve(bench.test_issuer.endpoint("introspect"), 503, "{}");
}

fn calls(bench: &Bench) -> usize {
    bench.fake.hits(bench.test_issuer.endpoint("introspect"))
}

async fn hold(bench: &Bench, token: &str) -> HeldToken {
    let verified = bench.verify(token).await.unwrap();
    bench.verifier.hold(&verified, token).unwrap()
}

async fn watch(bench: &Bench, token: &str) -> Arc<WatchedToken> {
    hold(bench, token).await.watch().unwrap()
}

/// Advances the time by one second at a time and starts the due checks.
async fn pass(bench: &Bench, seconds: u64) {
    for _ in 0..seconds {
        bench.pass(1).await;
        bench.issuer.start_due_rechecks();
        settle().await;
    }
}

/// L3: a token is checked once per interval for all references, early by at most a fifth, until the last one is
/// dropped.
#[tokio::test(start_paused = true)]
async fn references_share_checks() {
    let bench = bench().await;
    let first = watch(&bench, TOKEN).await;
    let second = watch(&bench, TOKEN).await;
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!((calls(&bench), bench.issuer.rechecks().len()), (1, 1));
    pass(&bench, INTERVAL - INTERVAL / 5 - 1).await;
    assert_eq!(calls(&bench), 1);
    pass(&bench, INTERVAL / 5 + 1).await;
    assert_eq!(calls(&bench), 2);
    drop(first);
    pass(&bench, INTERVAL).await;
    assert_eq!(calls(&bench), 3);
    assert!(second.latest().is_ok());
    drop(second);
    assert_eq!(bench.issuer.rechecks().len(), 0);
    pass(&bench, 3 * INTERVAL).await;
    assert_eq!(calls(&bench), 3);
}

/// L3: the checks of many tokens are spread over a fifth of the interval.
#[tokio::test(start_paused = true)]
async fn checks_are_spread() {
    let bench = bench().await;
    let rechecks = bench.issuer.rechecks();
    let due: Vec<_> = (0..100).map(|_| rechecks.next_after(Duration::from_secs(100))).collect();
    let range = Duration::from_secs(108)..=Duration::from_secs(110);
    assert!(due.iter().all(|due| range.contains(due)), "{due:?}");
    let (first, last) = (due.iter().min().unwrap(), due.iter().max().unwrap());
    assert!(*last - *first > Duration::from_secs(1), "{due:?}");
}

/// L3: without a cache the interval is 5 s. The minimum is 1 s.
#[tokio::test(start_paused = true)]
async fn the_interval_has_a_minimum() {
    for (cache_lifetime, interval) in [(0, 5000), (100, 1000), (1000, 1000), (30_000, 30_000)] {
        let bench = bench_with(|settings| settings.cache_lifetime = Duration::from_millis(cache_lifetime)).await;
        assert_eq!(bench.issuer.rechecks().interval(), Duration::from_millis(interval));
    }
}

/// L3: a token that becomes inactive or unacceptable fails with the next check, and requests with it are rejected.
#[tokio::test(start_paused = true)]
async fn a_rejected_token_fails() {
    let elsewhere = Issuer::parse("https://other.example").unwrap();
    for (answer, lost, code) in [
        (json!({"active": false}), RecheckFailure::Inactive, Some("token.inactive")),
        (with("aud", "https://other.example/mcp"), RecheckFailure::Inactive, Some("token.audience_mismatch")),
        (with("iss", elsewhere.as_str()), RecheckFailure::Inactive, Some("token.issuer_mismatch")),
        (with("exp", ManualClock::START.as_secs() - 60), RecheckFailure::Expired, Some("token.expired")),
        (with("sub", "mallory"), RecheckFailure::Inactive, None),
        (with("client_id", "another"), RecheckFailure::Inactive, None),
    ] {
        let bench = bench().await;
        let watched = watch(&bench, TOKEN).await;
        says(&bench, &answer);
        assert_eq!(bench.refusal(TOKEN).await, None, "remembered");
        pass(&bench, INTERVAL).await;
        assert_eq!(watched.latest().unwrap_err(), lost, "{answer}");
        assert_eq!(bench.refusal(TOKEN).await, code);
        // That is final. A later use of a token that is active again starts a new watch.
        let before = calls(&bench);
        says(&bench, &active());
        pass(&bench, INTERVAL).await;
        assert_eq!((watched.latest().unwrap_err(), calls(&bench)), (lost, before));
        let again = watch(&bench, TOKEN).await;
        assert!(again.latest().is_ok() && !Arc::ptr_eq(&watched, &again));
        drop(watched);
        assert_eq!(bench.issuer.rechecks().len(), 1);
    }
}

/// L3: a token that a check rejects is removed from the cache. A token that cannot be checked is not.
#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_removed_from_the_cache() {
    let bench = bench().await;
    let (token, before) = (AccessToken::new(TOKEN), bench.verify(TOKEN).await.unwrap());
    fails(&bench);
    assert!(bench.verifier.verify_again(&token).await.unwrap_err().is_unavailable());
    assert_eq!(
        bench.verifier.cached(TOKEN).unwrap().principal().introspected_at(),
        before.principal().introspected_at()
    );
    says(&bench, &json!({"active": false}));
    assert_eq!(bench.verifier.verify_again(&token).await.unwrap_err().code(), "token.inactive");
    assert!(bench.verifier.cached(TOKEN).is_none());
    assert_eq!(bench.refusal(TOKEN).await, Some("token.inactive"));
}

/// L3: a check updates the scopes and the expiration time.
#[tokio::test(start_paused = true)]
async fn a_check_updates_the_token() {
    let bench = bench().await;
    let watched = watch(&bench, TOKEN).await;
    let latest = watched.latest().unwrap();
    assert_eq!((latest.principal().valid_until(), latest.principal().scopes().to_string()), (None, "a b".to_owned()));
    let exp = ManualClock::START.as_secs() + 1000;
    let mut answer = with("exp", exp);
    answer["scope"] = json!("a");
    says(&bench, &answer);
    pass(&bench, INTERVAL).await;
    let latest = watched.latest().unwrap();
    assert_eq!(latest.principal().valid_until().unwrap().as_secs(), exp + 10, "with the leeway");
    assert_eq!(latest.principal().scopes().to_string(), "a");
}

/// L3: one failed check is tolerated. After two intervals without confirmation the token fails.
#[tokio::test(start_paused = true)]
async fn failures_are_tolerated_for_two_intervals() {
    let bench = bench().await;
    let watched = watch(&bench, TOKEN).await;
    fails(&bench);
    pass(&bench, 2 * INTERVAL - 1).await;
    assert!(watched.latest().is_ok());
    assert_eq!(calls(&bench), 2);
    pass(&bench, 1).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Unconfirmed);
    assert_eq!(calls(&bench), 3);

    // A confirmation in between begins two new intervals.
    let watched = {
        says(&bench, &active());
        watch(&bench, TOKEN).await
    };
    fails(&bench);
    pass(&bench, INTERVAL + INTERVAL / 2).await;
    says(&bench, &active());
    pass(&bench, INTERVAL).await;
    fails(&bench);
    pass(&bench, INTERVAL).await;
    assert!(watched.latest().is_ok());
}

/// L3: a token whose checks are not started fails 10 s after two intervals.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_checked_fails() {
    let bench = bench().await;
    let watched = watch(&bench, TOKEN).await;
    bench.pass(2 * INTERVAL + 10).await;
    assert!(watched.latest().is_ok());
    bench.pass(1).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Unconfirmed);
}

/// L3, D4: a token that a request has introspected is not introspected twice.
#[tokio::test(start_paused = true)]
async fn an_introspection_for_a_request_counts() {
    let bench = bench().await;
    let watched = watch(&bench, TOKEN).await;
    bench.pass(INTERVAL).await;
    assert_eq!(bench.refusal(TOKEN).await, None);
    assert_eq!(calls(&bench), 2);
    pass(&bench, INTERVAL - INTERVAL / 5 - 1).await;
    assert_eq!(calls(&bench), 2);
    pass(&bench, INTERVAL / 5 + 1).await;
    assert_eq!(calls(&bench), 3);
    assert!(watched.latest().is_ok());
}

/// L3, D4: half of the concurrent calls remain for requests.
#[tokio::test(start_paused = true)]
async fn checks_leave_calls_to_requests() {
    let bench = bench_with(|settings| settings.max_in_flight = 4).await;
    let mut watched = Vec::new();
    for number in 0..10 {
        watched.push(watch(&bench, &format!("{TOKEN}-{number}")).await);
    }
    let before = calls(&bench);
    let gate = bench.fake.hang(bench.test_issuer.endpoint("introspect"));
    bench.pass(INTERVAL).await;
    bench.issuer.start_due_rechecks();
    settle().await;
    bench.issuer.start_due_rechecks();
    settle().await;
    assert_eq!(calls(&bench), before + 2);
    gate.release();
    settle().await;
    assert_eq!(calls(&bench), before + 10, "the others follow without another sweep");
    assert!(watched.iter().all(|watched| watched.latest().is_ok()));
}

/// L3: a check that finds too many calls is repeated soon and is not a failure.
#[tokio::test(start_paused = true)]
async fn a_check_is_repeated_when_busy() {
    let bench = bench_with(|settings| settings.max_in_flight = 1).await;
    let watched = watch(&bench, TOKEN).await;
    bench.pass(INTERVAL).await;
    let gate = bench.fake.hang(bench.test_issuer.endpoint("introspect"));
    let verifier = Arc::clone(&bench.verifier);
    let other = tokio::spawn(async move { verifier.verify(&AccessToken::new("another")).await.is_ok() });
    gate.reached().await;
    let before = calls(&bench);
    bench.issuer.start_due_rechecks();
    settle().await;
    assert_eq!(calls(&bench), before);
    gate.release();
    assert!(other.await.unwrap());
    pass(&bench, 1).await;
    assert_eq!(calls(&bench), before + 1);
    assert!(watched.latest().is_ok());
}

/// L3: each resource watches a token separately because audiences differ. The calls are shared.
#[tokio::test(start_paused = true)]
async fn resources_watch_separately() {
    let bench = bench().await;
    let other = verifier_of("https://mcp.example.com/other", vec![Arc::clone(&bench.issuer)], &bench.clock);
    let both = json!([TestIssuer::RESOURCE, "https://mcp.example.com/other"]);
    says(&bench, &with("aud", both));
    let one = watch(&bench, TOKEN).await;
    let verified = other.verify(&AccessToken::new(TOKEN)).await.unwrap();
    let two = other.hold(&verified, TOKEN).unwrap().watch().unwrap();
    assert_eq!(bench.issuer.rechecks().len(), 2);
    says(&bench, &with("aud", ResourceUri::parse(TestIssuer::RESOURCE).unwrap().as_str()));
    pass(&bench, INTERVAL).await;
    assert!(one.latest().is_ok());
    assert_eq!(two.latest().unwrap_err(), RecheckFailure::Inactive);
}

/// L3: with a signature, the claims and the response both limit the validity.
#[tokio::test(start_paused = true)]
async fn a_signed_token_is_checked_too() {
    let bench = Bench::with(|issuer| issuer.validation = Validation::JwtAndIntrospection(settings()));
    says(&bench, &active());
    bench.issuer.refresh_now().await.unwrap();
    let token = bench.test_issuer.token().expires_in(60).sign();
    let watched = watch(&bench, &token).await;
    let start = ManualClock::START.as_secs();
    assert_eq!(watched.latest().unwrap().principal().valid_until().unwrap().as_secs(), start + 70);
    says(&bench, &with("exp", start + 30));
    pass(&bench, INTERVAL).await;
    assert_eq!(watched.latest().unwrap().principal().valid_until().unwrap().as_secs(), start + 40);
    says(&bench, &json!({"active": false}));
    pass(&bench, INTERVAL).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Inactive);
}

/// L3: a token that is verified by signature only is not held.
#[tokio::test(start_paused = true)]
async fn a_token_without_introspection_is_not_held() {
    let bench = Bench::new();
    let token = bench.test_issuer.token().expires_in(60).sign();
    let verified = bench.verify(&token).await.unwrap();
    assert!(bench.verifier.hold(&verified, &token).is_none());
    let principal = verified.principal();
    assert!(!principal.is_introspected());
    assert_eq!(principal.valid_until(), Some(principal.expires().saturating_add(Duration::from_secs(10))));
}

/// J3, L3: `Debug` never prints the token.
#[tokio::test(start_paused = true)]
async fn debug_prints_no_token() {
    let bench = bench().await;
    let held = hold(&bench, TOKEN).await;
    let watched = held.watch().unwrap();
    let shown = format!("{held:?} {watched:?} {:?} {:?}", held.clone(), bench.issuer);
    assert!(shown.contains("HeldToken") && !shown.contains("canary"), "{shown}");
}
