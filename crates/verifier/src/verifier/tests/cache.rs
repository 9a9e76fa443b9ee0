//! What is remembered, of what was verified and of whom it speaks for.

use super::*;

/// C11: what was verified is remembered, gives the same evidence, and ends with the token, without leeway.
#[tokio::test(start_paused = true)]
async fn verified_tokens_are_remembered() {
    let bench = ready().await;
    let token = bench.forge.token().expires_in(60).sign();
    assert!(bench.verifier.cached(&token).is_none());
    let verified = bench.verify(&token).await.unwrap();
    let remembered = bench.verifier.cached(&token).unwrap();
    assert!(std::ptr::eq(verified.principal(), remembered.principal()));
    assert!(bench.verifier.cached(flip_signature(&token)).is_none());

    bench.clock.advance(Duration::from_millis(59_999));
    assert!(bench.verifier.cached(&token).is_some());
    bench.clock.advance(Duration::from_millis(1));
    assert!(bench.verifier.cached(&token).is_none());
    assert_eq!(bench.verifier.cached_tokens(), 0);
    // Within the leeway it is still good, and judged anew each time.
    assert_eq!(bench.refusal(&token).await, None);
    assert_eq!(bench.verifier.cached_tokens(), 0);
    bench.clock.advance(Duration::from_secs(10));
    assert_eq!(bench.refusal(&token).await, Some("token.expired"));
}

/// C11: a refused token is not remembered, and a remembered one counts for one resource only.
#[tokio::test(start_paused = true)]
async fn memory_is_each_resources_own() {
    let bench = ready().await;
    let expired = bench.forge.token().expires_in(-60).sign();
    assert_eq!(bench.refusal(&expired).await, Some("token.expired"));
    assert_eq!(bench.verifier.cached_tokens(), 0);

    let token = bench.forge.token().sign();
    bench.verify(&token).await.unwrap();
    let neighbour = verifier_of("https://mcp.example.com/other", vec![Arc::clone(&bench.issuer)], &bench.clock);
    assert!(neighbour.cached(&token).is_none());
    let refused = neighbour.verify(&AccessToken::new(token)).await.unwrap_err();
    assert_eq!(refused.code(), "token.audience_mismatch");
}

/// C11: a change of one issuer's keys takes nothing of another's.
#[tokio::test(start_paused = true)]
async fn memory_is_each_issuers_own() {
    let (bench, other, other_issuer) = with_other_issuer().await;
    let (token, others) = (bench.forge.token().sign(), other.token().sign());
    bench.verify(&token).await.unwrap();
    bench.verify(&others).await.unwrap();
    other.rotate();
    bench.fake.publish(&other);
    other_issuer.refresh_now().await.unwrap();
    assert!(bench.verifier.cached(&token).is_some());
    assert!(bench.verifier.cached(&others).is_none());
    assert_eq!(bench.verifier.cached_tokens(), 1);
}

/// C11: what nobody asks for again is swept away.
#[tokio::test(start_paused = true)]
async fn memory_is_swept() {
    let bench = ready().await;
    bench.verify(&bench.forge.token().expires_in(30).sign()).await.unwrap();
    bench.verify(&bench.forge.token().expires_in(90).sign()).await.unwrap();
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!((bench.verifier.sweep(), bench.verifier.cached_tokens()), (1, 1));
}

/// C11: a hit and a miss of the memory allocate nothing.
#[tokio::test(start_paused = true)]
async fn a_lookup_does_not_allocate() {
    let bench = ready().await;
    let token = bench.forge.token().sign();
    let verified = bench.verify(&token).await.unwrap();
    let miss = flip_signature(&token);
    let allocations = allocation_counter::measure(|| {
        let hit = bench.verifier.cached(&token);
        assert!(std::ptr::eq(hit.as_ref().unwrap().principal(), verified.principal()));
        assert!(bench.verifier.cached(&miss).is_none());
    });
    assert_eq!(allocations.count_total, 0);
}

/// J5: requests count together by issuer and subject, whichever client and token, and by client only without a subject.
#[tokio::test(start_paused = true)]
async fn requests_count_by_subject_or_else_by_client() {
    let (bench, other, _) = with_other_issuer().await;
    let of = |forge: &TestIssuer| forge.token().subject("alice").client_id("one");
    let tokens = [
        of(&bench.forge),
        of(&bench.forge).client_id("two").expires_in(60),
        of(&bench.forge).subject("bob"),
        of(&other),
        of(&bench.forge).without("sub"),
        of(&bench.forge).without("sub").client_id("two"),
        of(&bench.forge).without("sub").client_id("alice"),
    ];
    let mut counts = Vec::new();
    for token in tokens {
        let verified = bench.verify(&token.sign()).await.unwrap();
        counts.push(verified.principal().limit_key());
        assert_eq!(verified.principal().limit_key(), *counts.last().unwrap());
    }
    assert_eq!(counts[0], counts[1]);
    for (position, one) in counts.iter().enumerate().skip(1) {
        assert!(!counts[position + 1..].contains(one), "{position}");
    }
}
