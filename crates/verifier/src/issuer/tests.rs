//! Keys are fetched once for all requests, within a cooldown, and refreshed in the background.

use portcullis_jose::Algorithm;
use portcullis_metadata::AccessToken;
use portcullis_testkit::TestIssuer;
use tokio::time::Instant;

use super::*;
use crate::testing::{Fixture, Logged, all, settle};

mod documents;
mod races;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Returns valid tokens with unknown keys.
fn unknown_kids(fixture: &Fixture, count: usize) -> Vec<String> {
    (0..count)
        .map(|at| {
            fixture
                .test_issuer
                .token()
                .kid(&format!("made-up-{at}"))
                .sign()
        })
        .collect()
}

async fn verify_all(fixture: &Fixture, tokens: Vec<String>) -> Vec<Result<(), &'static str>> {
    all(tokens.into_iter().map(|token| {
        let verifier = Arc::clone(&fixture.verifier);
        async move {
            verifier
                .verify(&AccessToken::new(token))
                .await
                .map(|_| ())
                .map_err(|error| error.code())
        }
    }))
    .await
}

fn fails(fixture: &Fixture) {
    fixture.fake.fail(fixture.test_issuer.metadata_url());
    fixture.fake.fail(fixture.test_issuer.endpoint("jwks"));
}

/// C10: without a background refresh, the first token causes discovery and the fetch of the keys.
#[tokio::test(start_paused = true)]
async fn the_first_token_fetches_the_keys() {
    let fixture = Fixture::new();
    assert_eq!(fixture.issuer.health(), IssuerHealth::Pending);
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    assert_eq!(
        fixture.fake.urls(),
        [
            fixture.test_issuer.metadata_url(),
            fixture.test_issuer.endpoint("jwks")
        ]
    );
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Usable {
            keys: 1,
            age: Duration::ZERO
        }
    );
}

/// C10: while an issuer is unavailable at startup, its tokens are not rejected and the error has a
/// `retry_after`. After the cooldown they are accepted.
#[tokio::test(start_paused = true)]
async fn an_issuer_can_be_unavailable_at_startup() {
    let fixture = Fixture::new();
    fails(&fixture);
    let token = AccessToken::new(fixture.test_issuer.token().sign());
    let error = fixture.verifier.verify(&token).await.unwrap_err();
    assert_eq!(error.code(), "issuer.unavailable");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Failed {
            reason: "fetch.connect"
        }
    );

    fixture.fake.publish(&fixture.test_issuer);
    fixture.pass(10).await;
    let error = fixture.verifier.verify(&token).await.unwrap_err();
    assert_eq!(error.code(), "issuer.unavailable");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(20)));

    fixture.pass(20).await;
    assert!(fixture.verifier.verify(&token).await.is_ok());
}

/// C10: the cooldown applies even if no keys were ever fetched.
#[tokio::test(start_paused = true)]
async fn an_unavailable_issuer_is_called_once_per_cooldown() {
    let fixture = Fixture::new();
    fails(&fixture);
    for _ in 0..3 {
        let results = verify_all(&fixture, unknown_kids(&fixture, 20)).await;
        assert!(
            results
                .iter()
                .all(|result| *result == Err("issuer.unavailable"))
        );
    }
    assert_eq!(fixture.fake.urls().len(), 1);
}

/// C10: the background refresh starts immediately, backs off during an outage, and recovers.
#[tokio::test(start_paused = true)]
async fn the_background_refresh_survives_an_outage() {
    let fixture = Fixture::new();
    fails(&fixture);
    fixture.issuer.spawn_refresh();
    fixture.issuer.spawn_refresh();
    settle().await;
    assert_eq!(fixture.fake.urls().len(), 1);

    for second in 0..10 * MINUTE {
        fixture.pass(1).await;
        assert!(fixture.fake.urls().len() <= 2 + second as usize);
    }
    let tries = fixture.fake.urls().len();
    assert!((10..=25).contains(&tries), "{tries} tries in 10 minutes");

    fixture.fake.publish(&fixture.test_issuer);
    fixture.pass(MINUTE).await;
    assert!(fixture.issuer.health().is_usable());
}

/// C10: keys are refreshed before they become stale.
#[tokio::test(start_paused = true)]
async fn the_background_refresh_keeps_keys_fresh() {
    let fixture = Fixture::new();
    fixture.issuer.spawn_refresh();
    settle().await;
    assert_eq!(fixture.hits(), 1);
    for _ in 0..60 {
        fixture.pass(MINUTE).await;
        assert!(
            matches!(fixture.issuer.health(), IssuerHealth::Usable { .. }),
            "{:?}",
            fixture.issuer.health()
        );
    }
    assert_eq!(fixture.hits(), 7, "one every 9 minutes in an hour");
}

/// C10: the background refresh stops when the issuer is dropped.
#[tokio::test(start_paused = true)]
async fn the_refresh_stops_on_drop() {
    let Fixture {
        fake,
        test_issuer,
        issuer,
        verifier,
        ..
    } = Fixture::new();
    issuer.spawn_refresh();
    settle().await;
    drop((issuer, verifier));
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    tokio::time::advance(Duration::from_secs(HOUR)).await;
    settle().await;
    assert_eq!(fake.hits(test_issuer.endpoint("jwks")), 1);
}

/// C10: concurrent requests with unknown keys cause one fetch and share its result.
#[tokio::test(start_paused = true)]
async fn one_fetch_for_all_requests() {
    let fixture = Fixture::new();
    let gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let tokens: Vec<String> = (0..200)
        .map(|_| fixture.test_issuer.token().sign())
        .chain(unknown_kids(&fixture, 200))
        .collect();
    let release = async {
        gate.reached().await;
        settle().await;
        gate.release();
    };
    let (results, ()) = tokio::join!(verify_all(&fixture, tokens), release);
    assert!(results[..200].iter().all(Result::is_ok));
    assert!(
        results[200..]
            .iter()
            .all(|result| *result == Err("token.key_unknown"))
    );
    assert_eq!(fixture.hits(), 1);
}

/// C10: a flood of unknown keys causes one fetch per cooldown. During the cooldown the tokens are
/// rejected immediately.
#[tokio::test(start_paused = true)]
async fn a_flood_causes_one_fetch_per_cooldown() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    for round in 1..=3 {
        for _ in 0..5 {
            let results = verify_all(&fixture, unknown_kids(&fixture, 50)).await;
            assert!(
                results
                    .iter()
                    .all(|result| *result == Err("token.key_unknown"))
            );
        }
        assert_eq!(fixture.hits(), 1 + round);
        fixture.pass(29).await;
        assert_eq!(
            fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
            Some("token.key_unknown")
        );
        assert_eq!(fixture.hits(), 1 + round);
        fixture.pass(1).await;
    }
}

/// C10: a flood delays a new key by at most the cooldown.
#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_after_a_flood() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    verify_all(&fixture, unknown_kids(&fixture, 200)).await;
    assert_eq!(fixture.hits(), 2);
    fixture.test_issuer.rotate();
    fixture.fake.publish(&fixture.test_issuer);
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        Some("token.key_unknown")
    );
    verify_all(&fixture, unknown_kids(&fixture, 200)).await;
    assert_eq!(fixture.hits(), 2);
    fixture.pass(30).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    assert_eq!(fixture.hits(), 3);
}

/// C10: after a failed fetch, an unknown key is unavailable and not rejected.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_during_an_outage_is_unavailable() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fails(&fixture);
    for _ in 0..2 {
        assert_eq!(
            fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
            Some("issuer.unavailable")
        );
    }
    assert_eq!(fixture.hits(), 2);
    // The current keys remain in use.
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
}

/// C10: an unknown key is unavailable if the keys are stale and the cooldown prevents a fetch.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_with_stale_keys_is_unavailable() {
    let fixture = Fixture::with(|settings| settings.cooldown = Duration::from_secs(HOUR));
    assert_eq!(
        fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
        Some("token.key_unknown")
    );
    fixture.pass(10 * MINUTE).await;
    assert_eq!(
        fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
        Some("token.key_unknown")
    );
    fixture.pass(1).await;
    assert_eq!(
        fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
        Some("issuer.unavailable")
    );
    assert_eq!(fixture.hits(), 1);
}

/// C10, C11: removed keys invalidate all tokens that they verified. The same keys in another order
/// do not.
#[tokio::test(start_paused = true)]
async fn removed_keys_invalidate_cached_tokens() {
    let fixture = Fixture::with(|settings| {
        settings.algorithms = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
    });
    let rsa = fixture.test_issuer.key();
    let ec = fixture.test_issuer.key_for(Algorithm::Es256);
    let publish = |keys: &[&_]| {
        fixture.fake.serve(
            fixture.test_issuer.endpoint("jwks"),
            200,
            TestIssuer::jwks_of(keys),
        )
    };
    publish(&[&rsa, &ec]);
    let token = fixture.test_issuer.token().sign();
    fixture.verify(&token).await.unwrap();
    assert!(fixture.verifier.cached(&token).is_some());

    publish(&[&ec, &rsa]);
    fixture.issuer.refresh_now().await.unwrap();
    assert!(fixture.verifier.cached(&token).is_some());

    publish(&[&ec]);
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.verifier.cached_tokens(), 1);
    assert!(fixture.verifier.cached(&token).is_none());
    assert_eq!(fixture.verifier.cached_tokens(), 0);
    assert_eq!(fixture.rejection(&token).await, Some("token.key_unknown"));
}

/// C10, C11: a changed key with the same identifier invalidates cached tokens.
#[tokio::test(start_paused = true)]
async fn changed_keys_invalidate_cached_tokens() {
    let fixture = Fixture::new();
    let token = fixture.test_issuer.token().sign();
    fixture.verify(&token).await.unwrap();
    let impostor = TestIssuer::new("https://other.example");
    assert_eq!(impostor.key().kid(), fixture.test_issuer.key().kid());
    fixture.fake.serve(
        fixture.test_issuer.endpoint("jwks"),
        200,
        impostor.jwks_json(),
    );
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.rejection(&token).await, Some("token.signature"));
}

/// C10: a slow issuer delays a request by at most 5 s. Its late response serves the next one.
#[tokio::test(start_paused = true)]
async fn a_slow_issuer_delays_requests_up_to_the_deadline() {
    let fixture = Fixture::new();
    let gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let token = fixture.test_issuer.token().sign();
    let started = Instant::now();
    assert_eq!(fixture.rejection(&token).await, Some("issuer.unavailable"));
    assert_eq!(started.elapsed().as_secs(), 5);
    gate.release();
    settle().await;
    assert_eq!(fixture.rejection(&token).await, None);
    assert_eq!(fixture.hits(), 1);
}

/// C10: a fetch that never completes is cancelled.
#[tokio::test(start_paused = true)]
async fn a_fetch_has_a_timeout() {
    let fixture = Fixture::new();
    let _gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let started = Instant::now();
    assert_eq!(
        fixture.issuer.refresh_now().await.unwrap_err().code(),
        "issuer.timeout"
    );
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Failed {
            reason: "issuer.timeout"
        }
    );
}

/// C10: stale keys are used during an outage for at most `max_stale`.
#[tokio::test(start_paused = true)]
async fn stale_keys_are_used_for_a_day() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fails(&fixture);
    fixture.pass(10 * MINUTE + 1).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );

    settle().await;
    let age = Duration::from_secs(10 * MINUTE + 1);
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Stale {
            keys: 1,
            age,
            reason: Some("fetch.connect")
        }
    );
    fixture.pass(24 * HOUR - 1).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );

    fixture.pass(1).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        Some("issuer.unavailable")
    );
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Failed {
            reason: "fetch.connect"
        }
    );
    fixture.fake.publish(&fixture.test_issuer);
    fixture.pass(30).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
}

/// C10: `max_stale` can be set.
#[tokio::test(start_paused = true)]
async fn max_stale_can_be_set() {
    let fixture = Fixture::with(|settings| settings.max_stale = Duration::ZERO);
    fixture.issuer.refresh_now().await.unwrap();
    fails(&fixture);
    fixture.pass(10 * MINUTE).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    fixture.pass(1).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        Some("issuer.unavailable")
    );
}

/// C10: without a background refresh, a token causes the refresh of stale keys and does not wait
/// for it.
#[tokio::test(start_paused = true)]
async fn stale_keys_are_refreshed_without_delay() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fixture.pass(10 * MINUTE + 1).await;
    let gate = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    gate.reached().await;
    gate.release();
    settle().await;
    assert!(matches!(
        fixture.issuer.health(),
        IssuerHealth::Usable { .. }
    ));
}

/// `Debug` prints the issuer and its health.
#[tokio::test]
async fn debug_prints_the_health() {
    let shown = format!("{:?}", Fixture::new().issuer);
    assert!(shown.starts_with("TrustedIssuer { issuer: "), "{shown}");
    assert!(shown.contains("issuer.example"), "{shown}");
    assert!(shown.ends_with("health: Pending, .. }"), "{shown}");
}

/// C10, C3: rejected and unused keys are logged with a reason.
#[tokio::test(start_paused = true)]
async fn rejected_keys_are_logged() {
    let fixture = Fixture::new();
    let (log, _guard) = Logged::here();
    let ec = fixture.test_issuer.key_for(Algorithm::Es256);
    let mut jwks: serde_json::Value =
        serde_json::from_str(&TestIssuer::jwks_of(&[&fixture.test_issuer.key(), &ec])).unwrap();
    jwks["keys"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({ "kty": "RSA", "kid": "private", "n": "AQAB", "e": "AQAB", "d": "AQAB" }));
    fixture
        .fake
        .serve(fixture.test_issuer.endpoint("jwks"), 200, jwks.to_string());
    fixture.issuer.refresh_now().await.unwrap();
    let lines = log.lines();
    let is_logged = |parts: [&str; 3]| {
        lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(
        is_logged(["WARN ", "key.id=\"private\"", "key.failure=\"jwk.private\""]),
        "{lines:?}"
    );

    let kid = format!("key.id={:?}", ec.kid());
    assert!(
        is_logged(["DEBUG ", &kid, "key.failure=\"key.algorithm_not_allowed\""]),
        "{lines:?}"
    );
}
