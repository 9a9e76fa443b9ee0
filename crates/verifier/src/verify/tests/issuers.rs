//! Which issuers are trusted, called and used for a token.

use super::*;

/// C1: tokens of all issuers of a resource are accepted.
#[tokio::test(start_paused = true)]
async fn several_issuers_serve_one_resource() {
    let (fixture, other, _) = with_other_issuer().await;
    for test_issuer in [&fixture.test_issuer, &other] {
        let verified = fixture.verify(&test_issuer.token().sign()).await.unwrap();
        assert_eq!(verified.principal().issuer(), test_issuer.issuer());
        assert_eq!(verified.principal().subject(), Some("alice"));
    }
}

/// C1, C2: the issuer is selected before the key. A key is not used for another issuer, even with
/// the same identifier.
#[tokio::test(start_paused = true)]
async fn a_key_is_used_for_its_own_issuer_only() {
    let (fixture, other, _) = with_other_issuer().await;
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().issuer(OTHER).sign())
            .await,
        Some("token.signature")
    );
    assert_eq!(
        fixture
            .rejection(
                &other
                    .token()
                    .issuer(fixture.test_issuer.issuer().as_str())
                    .sign()
            )
            .await,
        Some("token.signature")
    );
}

/// C1, C2: the allowed algorithms of one issuer do not apply to another.
#[tokio::test(start_paused = true)]
async fn algorithms_apply_to_one_issuer() {
    let (fixture, other, _) = with_other_issuer().await;
    let ec = TestIssuer::new("https://ec.example")
        .with_algorithm(Algorithm::Es256)
        .with_clock(fixture.clock.clone());
    fixture.fake.publish(&ec);
    let mut settings = IssuerSettings::new(ec.issuer().clone());
    settings.algorithms = [Algorithm::Es256].into_iter().collect();
    let issuer = trusted(settings, &fixture.fake, &fixture.clock, Handle::current());
    let verifier = verifier_of(
        TestIssuer::RESOURCE,
        vec![Arc::clone(&fixture.issuer), issuer],
        &fixture.clock,
    );
    let code = async |token: String| {
        verifier
            .verify(&AccessToken::new(token))
            .await
            .err()
            .map(|error| error.code())
    };
    assert_eq!(code(ec.token().sign()).await, None);
    assert_eq!(code(fixture.test_issuer.token().sign()).await, None);
    let crossed = fixture
        .test_issuer
        .token()
        .signed_by(fixture.test_issuer.key_for(Algorithm::Es256))
        .sign();
    assert_eq!(code(crossed).await, Some("token.algorithm_not_allowed"));
    assert_eq!(
        code(other.token().sign()).await,
        Some("token.issuer_unknown")
    );
}

/// C1: a verifier without issuers or with duplicates is rejected.
#[tokio::test(start_paused = true)]
async fn issuers_are_unique() {
    let fixture = Fixture::new();
    let rejection = |issuers| {
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        Verifier::new(settings, issuers, Arc::new(fixture.clock.clone()))
            .unwrap_err()
            .code()
    };
    assert_eq!(rejection(vec![]), "settings.no_issuer");
    assert_eq!(
        rejection(vec![
            Arc::clone(&fixture.issuer),
            Arc::clone(&fixture.issuer)
        ]),
        "settings.duplicate_issuer"
    );
}

/// C1, C5: keys are fetched only from configured issuers, for tokens that name them byte for byte.
#[tokio::test(start_paused = true)]
async fn only_configured_issuers_are_called() {
    let fixture = Fixture::new();
    for iss in [
        "https://issuer.example/",
        "https://ISSUER.example",
        "https://evil.example",
        "https://issuer.example:443",
        "https://issuer.example?",
        "https://issuer.example@evil.example",
        "",
    ] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().issuer(iss).sign())
                .await,
            Some("token.issuer_unknown"),
            "{iss}"
        );
    }
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().without("iss").sign())
            .await,
        Some("token.issuer_missing")
    );

    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().claim("iss", json!(null)).sign())
            .await,
        Some("token.issuer_missing")
    );
    for iss in [json!(7), json!(["https://issuer.example"]), json!({})] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().claim("iss", iss).sign())
                .await,
            Some("claims.type")
        );
    }
    let twice = r#"{"iss":"https://evil.example","iss":"https://issuer.example"}"#;
    let twice = fixture.test_issuer.token().raw_payload(twice).sign();
    assert_eq!(
        fixture.rejection(&twice).await,
        Some("claims.not_an_object")
    );
    assert!(fixture.fake.urls().is_empty());
}
