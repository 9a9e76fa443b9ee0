//! The cache of verified tokens and the limit key.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::VerificationObserver;

/// C11: a verified token is cached until it expires, without leeway.
#[tokio::test(start_paused = true)]
async fn verified_tokens_are_cached() {
    let fixture = ready().await;
    let token = fixture.test_issuer.token().expires_in(60).sign();
    assert!(fixture.verifier.cached(&token).is_none());
    let verified = fixture.verify(&token).await.unwrap();
    let remembered = fixture.verifier.cached(&token).unwrap();
    assert!(std::ptr::eq(verified.principal(), remembered.principal()));
    assert!(fixture.verifier.cached(flip_signature(&token)).is_none());

    fixture.clock.advance(Duration::from_millis(59_999));
    assert!(fixture.verifier.cached(&token).is_some());
    fixture.clock.advance(Duration::from_millis(1));
    assert!(fixture.verifier.cached(&token).is_none());
    assert_eq!(fixture.verifier.cached_tokens(), 0);

    // Within the leeway it is still valid, but verified again each time.
    assert_eq!(fixture.rejection(&token).await, None);
    assert_eq!(fixture.verifier.cached_tokens(), 0);
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(fixture.rejection(&token).await, Some("token.expired"));
}

/// C11: rejected tokens are not cached, and a cached token is valid for one resource only.
#[tokio::test(start_paused = true)]
async fn each_resource_has_its_own_cache() {
    let fixture = ready().await;
    let expired = fixture.test_issuer.token().expires_in(-60).sign();
    assert_eq!(fixture.rejection(&expired).await, Some("token.expired"));
    assert_eq!(fixture.verifier.cached_tokens(), 0);

    let token = fixture.test_issuer.token().sign();
    fixture.verify(&token).await.unwrap();
    let neighbour = verifier_of(
        "https://mcp.example.com/other",
        vec![Arc::clone(&fixture.issuer)],
        &fixture.clock,
    );
    assert!(neighbour.cached(&token).is_none());
    let rejected = neighbour
        .verify(&AccessToken::new(token))
        .await
        .unwrap_err();
    assert_eq!(rejected.code(), "token.audience_mismatch");
}

/// C11: new keys of one issuer do not invalidate tokens of another.
#[tokio::test(start_paused = true)]
async fn new_keys_invalidate_one_issuers_tokens() {
    let (fixture, other, other_issuer) = with_other_issuer().await;
    let token = fixture.test_issuer.token().sign();
    let others = other.token().sign();
    fixture.verify(&token).await.unwrap();
    fixture.verify(&others).await.unwrap();
    other.rotate();
    fixture.fake.publish(&other);
    other_issuer.refresh_now().await.unwrap();
    assert!(fixture.verifier.cached(&token).is_some());
    assert!(fixture.verifier.cached(&others).is_none());
    assert_eq!(fixture.verifier.cached_tokens(), 1);
}

/// C11: when an administrator drops the cached tokens of an issuer, each is verified again, and
/// those of others stay.
#[tokio::test(start_paused = true)]
async fn dropped_tokens_are_verified_again() {
    let (fixture, other, other_issuer) = with_other_issuer().await;
    let token = fixture.test_issuer.token().sign();
    let others = other.token().sign();
    fixture.verify(&token).await.unwrap();
    fixture.verify(&others).await.unwrap();
    other_issuer.drop_cached_tokens();
    assert_eq!(fixture.verifier.sweep(), 1);
    assert_eq!(fixture.verifier.cached_tokens(), 1);
    assert!(fixture.verifier.cached(&token).is_some());
    assert!(fixture.verifier.cached(&others).is_none());
    fixture.verify(&others).await.unwrap();
    assert!(
        fixture.verifier.cached(&others).is_some(),
        "it is cached again"
    );
}

/// C11: a sweep removes tokens that are not looked up again.
#[tokio::test(start_paused = true)]
async fn the_cache_is_swept() {
    let fixture = ready().await;
    fixture
        .verify(&fixture.test_issuer.token().expires_in(30).sign())
        .await
        .unwrap();
    fixture
        .verify(&fixture.test_issuer.token().expires_in(90).sign())
        .await
        .unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(fixture.verifier.sweep(), 1);
    assert_eq!(fixture.verifier.cached_tokens(), 1);
}

/// C11: lookups do not allocate.
#[tokio::test(start_paused = true)]
async fn a_lookup_does_not_allocate() {
    let fixture = ready().await;
    let token = fixture.test_issuer.token().sign();
    let verified = fixture.verify(&token).await.unwrap();
    let miss = flip_signature(&token);
    let allocations = allocation_counter::measure(|| {
        let hit = fixture.verifier.cached(&token);
        assert!(std::ptr::eq(
            hit.as_ref().unwrap().principal(),
            verified.principal()
        ));
        assert!(fixture.verifier.cached(&miss).is_none());
    });
    assert_eq!(allocations.count_total, 0);
}

/// J5: the limit key depends on the issuer and the subject or, without a subject, the client.
#[tokio::test(start_paused = true)]
async fn the_limit_key_is_by_subject_or_else_by_client() {
    let (fixture, other, _) = with_other_issuer().await;
    let of = |test_issuer: &TestIssuer| test_issuer.token().subject("alice").client_id("one");
    let tokens = [
        of(&fixture.test_issuer),
        of(&fixture.test_issuer).client_id("two").expires_in(60),
        of(&fixture.test_issuer).subject("bob"),
        of(&other),
        of(&fixture.test_issuer).without("sub"),
        of(&fixture.test_issuer).without("sub").client_id("two"),
        of(&fixture.test_issuer).without("sub").client_id("alice"),
    ];
    let mut counts = Vec::new();
    for token in tokens {
        let verified = fixture.verify(&token.sign()).await.unwrap();
        counts.push(verified.principal().limit_key());
        assert_eq!(verified.principal().limit_key(), *counts.last().unwrap());
    }
    assert_eq!(counts[0], counts[1]);

    for (position, one) in counts.iter().enumerate().skip(1) {
        assert!(!counts[position + 1..].contains(one), "{position}");
    }
}

/// Counts what it observes.
#[derive(Debug, Default)]
struct Observed {
    cached: AtomicUsize,
    verified: AtomicUsize,
}

impl VerificationObserver for Observed {
    fn cached(&self) {
        self.cached.fetch_add(1, Ordering::SeqCst);
    }

    fn verified(&self, _: Duration) {
        self.verified.fetch_add(1, Ordering::SeqCst);
    }
}

/// J7: cached tokens and verifications are observed, rejected ones too, and the fetches of the keys
/// are counted.
#[tokio::test(start_paused = true)]
async fn verifications_are_observed() {
    let fixture = ready().await;
    let observed = Arc::<Observed>::default();
    let mut settings = VerifierSettings::new(fixture.verifier.resource().clone());
    settings.observer = Some(Arc::clone(&observed) as _);
    let verifier = Verifier::new(
        settings,
        vec![Arc::clone(&fixture.issuer)],
        Arc::new(fixture.clock.clone()),
    )
    .unwrap();
    let token = AccessToken::new(fixture.test_issuer.token().sign());
    for _ in 0..3 {
        verifier.verify(&token).await.unwrap();
    }
    verifier
        .verify(&AccessToken::new("not-a-token"))
        .await
        .unwrap_err();
    assert_eq!(observed.cached.load(Ordering::SeqCst), 2);
    assert_eq!(observed.verified.load(Ordering::SeqCst), 2);

    let activity = fixture.issuer.activity();
    assert_eq!(activity.fetches, 1);
    assert_eq!(activity.fetch_failures, 0);
    assert_eq!(activity.introspections, 0);

    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.issuer.activity().fetches, 2);
}
