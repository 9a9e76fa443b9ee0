//! Rechecks share calls, tolerate outages for a while, and end rejected tokens.

use portcullis_metadata::{AccessToken, Issuer, ResourceUri, Secret};
use portcullis_testkit::{ManualClock, TestIssuer};
use serde_json::{Value, json};

use super::*;
use crate::{
    HeldToken, IntrospectionSettings, Validation,
    testing::{Fixture, settle, verifier_of},
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

/// Returns a fixture whose issuer introspects all tokens as active.
async fn fixture_with(change: impl FnOnce(&mut IntrospectionSettings)) -> Fixture {
    let mut settings = settings();
    change(&mut settings);
    let fixture = Fixture::with(|issuer| issuer.validation = Validation::Introspection(settings));
    set_response(&fixture, &active());
    fixture.issuer.refresh_now().await.unwrap();
    fixture
}

async fn fixture() -> Fixture {
    fixture_with(|_| ()).await
}

fn active() -> Value {
    json!({ "active": true, "aud": TestIssuer::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "a b" })
}

fn with(member: &str, value: impl Into<Value>) -> Value {
    let mut response = active();
    response[member] = value.into();
    response
}

fn set_response(fixture: &Fixture, response: &Value) {
    fixture.fake.serve(
        fixture.test_issuer.endpoint("introspect"),
        200,
        response.to_string(),
    );
}

fn fails(fixture: &Fixture) {
    fixture
        .fake
        .serve(fixture.test_issuer.endpoint("introspect"), 503, "{}");
}

fn calls(fixture: &Fixture) -> usize {
    fixture
        .fake
        .hits(fixture.test_issuer.endpoint("introspect"))
}

async fn hold(fixture: &Fixture, token: &str) -> HeldToken {
    let verified = fixture.verify(token).await.unwrap();
    fixture.verifier.hold(&verified, token).unwrap()
}

async fn watch(fixture: &Fixture, token: &str) -> Arc<WatchedToken> {
    hold(fixture, token).await.watch().unwrap()
}

/// Advances the time by one second at a time and starts the due checks.
async fn pass(fixture: &Fixture, seconds: u64) {
    for _ in 0..seconds {
        fixture.pass(1).await;
        fixture.issuer.start_due_rechecks();
        settle().await;
    }
}

/// L3: a token is checked once per interval for all references, early by at most a fifth, until the
/// last one is dropped.
#[tokio::test(start_paused = true)]
async fn references_share_checks() {
    let fixture = fixture().await;
    let first = watch(&fixture, TOKEN).await;
    let second = watch(&fixture, TOKEN).await;
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(calls(&fixture), 1);
    assert_eq!(fixture.issuer.rechecks().len(), 1);

    pass(&fixture, INTERVAL - INTERVAL / 5 - 1).await;
    assert_eq!(calls(&fixture), 1);
    pass(&fixture, INTERVAL / 5 + 1).await;
    assert_eq!(calls(&fixture), 2);

    drop(first);
    pass(&fixture, INTERVAL).await;
    assert_eq!(calls(&fixture), 3);
    assert!(second.latest().is_ok());

    drop(second);
    assert_eq!(fixture.issuer.rechecks().len(), 0);
    pass(&fixture, 3 * INTERVAL).await;
    assert_eq!(calls(&fixture), 3);
}

/// L3: the checks of many tokens are spread over a fifth of the interval.
#[tokio::test(start_paused = true)]
async fn checks_are_spread() {
    let fixture = fixture().await;
    let rechecks = fixture.issuer.rechecks();
    let due: Vec<_> = (0..100)
        .map(|_| rechecks.next_after(Duration::from_secs(100)))
        .collect();
    let range = Duration::from_secs(108)..=Duration::from_secs(110);
    assert!(due.iter().all(|due| range.contains(due)), "{due:?}");
    let first = due.iter().min().unwrap();
    let last = due.iter().max().unwrap();
    assert!(*last - *first > Duration::from_secs(1), "{due:?}");
}

/// L3: without a cache the interval is 5 s. The minimum is 1 s.
#[tokio::test(start_paused = true)]
async fn the_interval_has_a_minimum() {
    for (cache_lifetime, interval) in [(0, 5000), (100, 1000), (1000, 1000), (30_000, 30_000)] {
        let fixture = fixture_with(|settings| {
            settings.cache_lifetime = Duration::from_millis(cache_lifetime)
        })
        .await;
        assert_eq!(
            fixture.issuer.rechecks().interval(),
            Duration::from_millis(interval)
        );
    }
}

/// L3: a token that becomes inactive or unacceptable fails with the next check, and requests with
/// it are rejected.
#[tokio::test(start_paused = true)]
async fn a_rejected_token_fails() {
    let elsewhere = Issuer::parse("https://other.example").unwrap();
    for (response, lost, code) in [
        (
            json!({"active": false}),
            RecheckFailure::Inactive,
            Some("token.inactive"),
        ),
        (
            with("aud", "https://other.example/mcp"),
            RecheckFailure::Inactive,
            Some("token.audience_mismatch"),
        ),
        (
            with("iss", elsewhere.as_str()),
            RecheckFailure::Inactive,
            Some("token.issuer_mismatch"),
        ),
        (
            with("exp", ManualClock::START.as_secs() - 60),
            RecheckFailure::Expired,
            Some("token.expired"),
        ),
        (with("sub", "mallory"), RecheckFailure::Inactive, None),
        (with("client_id", "another"), RecheckFailure::Inactive, None),
    ] {
        let fixture = fixture().await;
        let watched = watch(&fixture, TOKEN).await;
        set_response(&fixture, &response);
        assert_eq!(fixture.rejection(TOKEN).await, None, "remembered");
        pass(&fixture, INTERVAL).await;
        assert_eq!(watched.latest().unwrap_err(), lost, "{response}");
        assert_eq!(fixture.rejection(TOKEN).await, code);
        // That is final. A later use of a token that is active again starts a new watch.
        let before = calls(&fixture);
        set_response(&fixture, &active());
        pass(&fixture, INTERVAL).await;
        assert_eq!(watched.latest().unwrap_err(), lost);
        assert_eq!(calls(&fixture), before);
        let again = watch(&fixture, TOKEN).await;
        assert!(again.latest().is_ok());
        assert!(!Arc::ptr_eq(&watched, &again));
        drop(watched);
        assert_eq!(fixture.issuer.rechecks().len(), 1);
    }
}

/// L3: a token that a check rejects is removed from the cache. A token that cannot be checked is
/// not.
#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_removed_from_the_cache() {
    let fixture = fixture().await;
    let token = AccessToken::new(TOKEN);
    let before = fixture.verify(TOKEN).await.unwrap();
    fails(&fixture);
    assert!(
        fixture
            .verifier
            .verify_again(&token)
            .await
            .unwrap_err()
            .is_unavailable()
    );
    assert_eq!(
        fixture
            .verifier
            .cached(TOKEN)
            .unwrap()
            .principal()
            .introspected_at(),
        before.principal().introspected_at()
    );
    set_response(&fixture, &json!({"active": false}));
    assert_eq!(
        fixture
            .verifier
            .verify_again(&token)
            .await
            .unwrap_err()
            .code(),
        "token.inactive"
    );
    assert!(fixture.verifier.cached(TOKEN).is_none());
    assert_eq!(fixture.rejection(TOKEN).await, Some("token.inactive"));
}

/// L3: a check updates the scopes and the expiration time.
#[tokio::test(start_paused = true)]
async fn a_check_updates_the_token() {
    let fixture = fixture().await;
    let watched = watch(&fixture, TOKEN).await;
    let latest = watched.latest().unwrap();
    assert_eq!(latest.principal().valid_until(), None);
    assert_eq!(latest.principal().scopes().to_string(), "a b".to_owned());
    let exp = ManualClock::START.as_secs() + 1000;
    let mut response = with("exp", exp);
    response["scope"] = json!("a");
    set_response(&fixture, &response);
    pass(&fixture, INTERVAL).await;
    let latest = watched.latest().unwrap();
    assert_eq!(
        latest.principal().valid_until().unwrap().as_secs(),
        exp + 10,
        "with the leeway"
    );
    assert_eq!(latest.principal().scopes().to_string(), "a");
}

/// L3: one failed check is tolerated. After two intervals without confirmation the token fails.
#[tokio::test(start_paused = true)]
async fn failures_are_tolerated_for_two_intervals() {
    let fixture = fixture().await;
    let watched = watch(&fixture, TOKEN).await;
    fails(&fixture);
    pass(&fixture, 2 * INTERVAL - 1).await;
    assert!(watched.latest().is_ok());
    assert_eq!(calls(&fixture), 2);

    pass(&fixture, 1).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Unconfirmed);
    assert_eq!(calls(&fixture), 3);

    // A confirmation in between begins two new intervals.
    let watched = {
        set_response(&fixture, &active());
        watch(&fixture, TOKEN).await
    };
    fails(&fixture);
    pass(&fixture, INTERVAL + INTERVAL / 2).await;
    set_response(&fixture, &active());
    pass(&fixture, INTERVAL).await;
    fails(&fixture);
    pass(&fixture, INTERVAL).await;
    assert!(watched.latest().is_ok());
}

/// L3: a token whose checks are not started fails 10 s after two intervals.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_checked_fails() {
    let fixture = fixture().await;
    let watched = watch(&fixture, TOKEN).await;
    fixture.pass(2 * INTERVAL + 10).await;
    assert!(watched.latest().is_ok());
    fixture.pass(1).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Unconfirmed);
    // That is final: the token is not checked any more.
    pass(&fixture, INTERVAL).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Unconfirmed);
    assert_eq!(calls(&fixture), 1);
}

/// L3, D4: a token that a request has introspected is not introspected twice.
#[tokio::test(start_paused = true)]
async fn an_introspection_for_a_request_counts() {
    let fixture = fixture().await;
    let watched = watch(&fixture, TOKEN).await;
    fixture.pass(INTERVAL).await;
    assert_eq!(fixture.rejection(TOKEN).await, None);
    assert_eq!(calls(&fixture), 2);
    pass(&fixture, INTERVAL - INTERVAL / 5 - 1).await;
    assert_eq!(calls(&fixture), 2);
    pass(&fixture, INTERVAL / 5 + 1).await;
    assert_eq!(calls(&fixture), 3);
    assert!(watched.latest().is_ok());
}

/// L3, D4: half of the concurrent calls remain for requests.
#[tokio::test(start_paused = true)]
async fn checks_leave_calls_to_requests() {
    let fixture = fixture_with(|settings| settings.max_in_flight = 4).await;
    let mut watched = Vec::new();
    for number in 0..10 {
        watched.push(watch(&fixture, &format!("{TOKEN}-{number}")).await);
    }
    let before = calls(&fixture);
    let gate = fixture
        .fake
        .hang(fixture.test_issuer.endpoint("introspect"));
    fixture.pass(INTERVAL).await;
    fixture.issuer.start_due_rechecks();
    settle().await;
    fixture.issuer.start_due_rechecks();
    settle().await;
    assert_eq!(calls(&fixture), before + 2);

    gate.release();
    settle().await;
    assert_eq!(
        calls(&fixture),
        before + 10,
        "the others follow without another sweep"
    );
    assert!(watched.iter().all(|watched| watched.latest().is_ok()));
}

/// L3: a check that finds too many calls is repeated soon and is not a failure.
#[tokio::test(start_paused = true)]
async fn a_check_is_repeated_when_busy() {
    let fixture = fixture_with(|settings| settings.max_in_flight = 1).await;
    let watched = watch(&fixture, TOKEN).await;
    fixture.pass(INTERVAL).await;
    let gate = fixture
        .fake
        .hang(fixture.test_issuer.endpoint("introspect"));
    let verifier = Arc::clone(&fixture.verifier);
    let other =
        tokio::spawn(async move { verifier.verify(&AccessToken::new("another")).await.is_ok() });
    gate.reached().await;
    let before = calls(&fixture);
    fixture.issuer.start_due_rechecks();
    settle().await;
    assert_eq!(calls(&fixture), before);

    gate.release();
    assert!(other.await.unwrap());
    pass(&fixture, 1).await;
    assert_eq!(calls(&fixture), before + 1);
    assert!(watched.latest().is_ok());
}

/// L3: each resource watches a token separately because audiences differ. The calls are shared.
#[tokio::test(start_paused = true)]
async fn resources_watch_separately() {
    let fixture = fixture().await;
    let other = verifier_of(
        "https://mcp.example.com/other",
        vec![Arc::clone(&fixture.issuer)],
        &fixture.clock,
    );
    let both = json!([TestIssuer::RESOURCE, "https://mcp.example.com/other"]);
    set_response(&fixture, &with("aud", both));
    let one = watch(&fixture, TOKEN).await;
    let verified = other.verify(&AccessToken::new(TOKEN)).await.unwrap();
    let two = other.hold(&verified, TOKEN).unwrap().watch().unwrap();
    assert_eq!(fixture.issuer.rechecks().len(), 2);
    set_response(
        &fixture,
        &with(
            "aud",
            ResourceUri::parse(TestIssuer::RESOURCE).unwrap().as_str(),
        ),
    );
    pass(&fixture, INTERVAL).await;
    assert!(one.latest().is_ok());
    assert_eq!(two.latest().unwrap_err(), RecheckFailure::Inactive);
}

/// L3: with a signature, the claims and the response both limit the validity.
#[tokio::test(start_paused = true)]
async fn a_signed_token_is_checked_too() {
    let fixture =
        Fixture::with(|issuer| issuer.validation = Validation::JwtAndIntrospection(settings()));
    set_response(&fixture, &active());
    fixture.issuer.refresh_now().await.unwrap();
    let token = fixture.test_issuer.token().expires_in(60).sign();
    let watched = watch(&fixture, &token).await;
    let start = ManualClock::START.as_secs();
    assert_eq!(
        watched
            .latest()
            .unwrap()
            .principal()
            .valid_until()
            .unwrap()
            .as_secs(),
        start + 70
    );
    set_response(&fixture, &with("exp", start + 30));
    pass(&fixture, INTERVAL).await;
    assert_eq!(
        watched
            .latest()
            .unwrap()
            .principal()
            .valid_until()
            .unwrap()
            .as_secs(),
        start + 40
    );
    set_response(&fixture, &json!({"active": false}));
    pass(&fixture, INTERVAL).await;
    assert_eq!(watched.latest().unwrap_err(), RecheckFailure::Inactive);
}

/// L3: an inactive response about a token whose expiration time is over, and a missing one, mean
/// that it has expired, not that it was revoked. Another subject means more.
#[tokio::test(start_paused = true)]
async fn an_expired_token_is_not_a_revoked_one() {
    let start = ManualClock::START.as_secs();
    let inactive = json!({"active": false});
    for (lifetime, response, lost) in [
        (4, Some(&inactive), RecheckFailure::Expired),
        (60, Some(&inactive), RecheckFailure::Inactive),
        (4, Some(&with("sub", "mallory")), RecheckFailure::Inactive),
        (4, None, RecheckFailure::Expired),
        (60, None, RecheckFailure::Unconfirmed),
    ] {
        let fixture = fixture().await;
        set_response(&fixture, &with("exp", start + lifetime));
        let watched = watch(&fixture, TOKEN).await;
        match response {
            Some(response) => set_response(&fixture, response),
            None => fails(&fixture),
        }
        pass(&fixture, 2 * INTERVAL).await;
        let failure = watched.latest().unwrap_err();
        assert_eq!(failure, lost, "{lifetime} {response:?}");
    }
    // The same without checks.
    for (lifetime, lost) in [
        (4, RecheckFailure::Expired),
        (60, RecheckFailure::Unconfirmed),
    ] {
        let fixture = fixture().await;
        set_response(&fixture, &with("exp", start + lifetime));
        let watched = watch(&fixture, TOKEN).await;
        fixture.pass(2 * INTERVAL + 11).await;
        assert_eq!(watched.latest().unwrap_err(), lost, "{lifetime}");
    }
}

/// L3: a token that is verified by signature only is not held.
#[tokio::test(start_paused = true)]
async fn a_token_without_introspection_is_not_held() {
    let fixture = Fixture::new();
    let token = fixture.test_issuer.token().expires_in(60).sign();
    let verified = fixture.verify(&token).await.unwrap();
    assert!(fixture.verifier.hold(&verified, &token).is_none());
    let principal = verified.principal();
    assert!(!principal.is_introspected());
    assert_eq!(
        principal.valid_until(),
        Some(principal.expires().saturating_add(Duration::from_secs(10)))
    );
}

/// J3, L3: `Debug` never prints the token.
#[tokio::test(start_paused = true)]
async fn debug_prints_no_token() {
    let fixture = fixture().await;
    let held = hold(&fixture, TOKEN).await;
    let watched = held.watch().unwrap();
    let shown = format!(
        "{held:?} {watched:?} {:?} {:?}",
        held.clone(),
        fixture.issuer
    );
    assert!(shown.contains("HeldToken"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}
