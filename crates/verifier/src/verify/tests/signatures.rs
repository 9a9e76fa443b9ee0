//! Issuers, algorithms and keys are separate, and keys never come from a token.

use portcullis_jose::SigningKey;
use portcullis_metadata::JwkSet;
use portcullis_testkit::flip_payload;

use super::*;

/// C2: every supported algorithm is accepted if it is allowed, and otherwise rejected without a
/// fetch.
#[tokio::test(start_paused = true)]
async fn algorithms_are_configured() {
    for algorithm in Algorithm::ALL {
        let fixture = Fixture::with(allowing([algorithm]));
        let key = fixture.test_issuer.key_for(algorithm);
        fixture.fake.serve(
            fixture.test_issuer.endpoint("jwks"),
            200,
            TestIssuer::jwks_of(&[&key]),
        );
        let token = fixture
            .test_issuer
            .token()
            .signed_by(Arc::clone(&key))
            .sign();
        assert_eq!(fixture.rejection(&token).await, None, "{algorithm}");

        let others = Algorithm::ALL
            .into_iter()
            .filter(|other| *other != algorithm);
        let fixture = Fixture::with(allowing(others));
        fixture.fake.serve(
            fixture.test_issuer.endpoint("jwks"),
            200,
            TestIssuer::jwks_of(&[&key]),
        );
        assert_eq!(
            fixture.rejection(&token).await,
            Some("token.algorithm_not_allowed"),
            "{algorithm}"
        );
        assert!(fixture.fake.urls().is_empty());
    }
}

/// C2: only RS256 is allowed by default.
#[tokio::test(start_paused = true)]
async fn rs256_is_the_default() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    for algorithm in Algorithm::ALL
        .into_iter()
        .filter(|algorithm| *algorithm != Algorithm::Rs256)
    {
        let token = fixture.test_issuer.token().alg(algorithm.as_str()).sign();
        assert_eq!(
            fixture.rejection(&token).await,
            Some("token.algorithm_not_allowed"),
            "{algorithm}"
        );
    }
}

/// C2: unsigned tokens with any spelling of `none`, and algorithm confusion, are rejected.
#[tokio::test(start_paused = true)]
async fn unsigned_and_confused_tokens_are_rejected() {
    let fixture = ready().await;
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let code = fixture
            .rejection(&fixture.test_issuer.token().unsigned(none))
            .await;
        assert!(
            matches!(
                code,
                Some("token.malformed" | "token.algorithm_unsupported")
            ),
            "{none}: {code:?}"
        );
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().alg(none).sign())
                .await,
            Some("token.algorithm_unsupported")
        );
    }
    for token in fixture.test_issuer.token().hmac_with_public_key() {
        assert_eq!(
            fixture.rejection(&token).await,
            Some("token.algorithm_unsupported")
        );
    }
    for alg in ["HS384", "HS512", "ES256K", "RSA-OAEP", "dir"] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().alg(alg).sign())
                .await,
            Some("token.algorithm_unsupported"),
            "{alg}"
        );
    }
}

/// C2: keys in the header of a token are never used.
#[tokio::test(start_paused = true)]
async fn keys_never_come_from_a_token() {
    let fixture = ready().await;
    let attacker = Arc::new(SigningKey::generate(Algorithm::Rs256, "attacker").unwrap());
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().self_signed(&attacker))
            .await,
        Some("token.signature")
    );
    for (member, value) in [
        ("jku", json!("https://evil.example/jwks")),
        ("x5u", json!("https://evil.example/cert")),
        ("x5c", json!(["MIIB"])),
        ("jwk", attacker.public_jwk()),
    ] {
        let stolen = fixture
            .test_issuer
            .token()
            .signed_by(Arc::clone(&attacker))
            .header(member, value.clone());
        assert_eq!(
            fixture
                .rejection(&stolen.clone().kid(fixture.test_issuer.key().kid()).sign())
                .await,
            Some("token.signature")
        );
        assert_eq!(
            fixture
                .rejection(&stolen.clone().without_header("kid").sign())
                .await,
            Some("token.signature")
        );
        assert_eq!(
            fixture.rejection(&stolen.sign()).await,
            Some("token.key_unknown")
        );
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().header(member, value).sign())
                .await,
            None
        );
    }
    assert!(
        fixture
            .fake
            .urls()
            .iter()
            .all(|url| url.host_str() == Some("issuer.example"))
    );
}

/// C2: extensions, encryption and duplicate members are rejected. Unknown members are ignored.
#[tokio::test(start_paused = true)]
async fn the_header_is_parsed_strictly() {
    let fixture = ready().await;
    let kid = fixture.test_issuer.key().kid().to_owned();
    for (member, value, code) in [
        ("crit", json!(["exp"]), "token.header_extension"),
        ("crit", json!([]), "token.header_extension"),
        ("b64", json!(false), "token.header_extension"),
        ("b64", json!(true), "token.header_extension"),
        ("enc", json!("A128GCM"), "token.encrypted"),
        ("kid", json!(7), "token.header_malformed"),
        ("typ", json!(["at+jwt"]), "token.header_malformed"),
    ] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().header(member, value).sign())
                .await,
            Some(code),
            "{member}"
        );
    }
    for value in [json!({ "a": [1] }), json!(null), json!(1e300)] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().header("x", value).sign())
                .await,
            None
        );
    }
    let twice = format!(r#"{{"alg":"none","alg":"RS256","kid":"{kid}"}}"#);
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().raw_header(twice).sign())
            .await,
        Some("token.header_duplicate")
    );
}

/// C2: a token with one changed bit is rejected.
#[tokio::test(start_paused = true)]
async fn a_modified_token_is_rejected() {
    let fixture = ready().await;
    let token = fixture.test_issuer.token().claim("x", "yyy").sign();
    assert_eq!(
        fixture.rejection(&flip_signature(&token)).await,
        Some("token.signature")
    );
    assert!(fixture.rejection(&flip_payload(&token)).await.is_some());
    let other = fixture.test_issuer.token().subject("mallory").sign();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (other_signed, other_signature) = other.rsplit_once('.').unwrap();
    for (case, changed, code) in [
        (
            "another token's signature",
            format!("{signed}.{other_signature}"),
            "token.signature",
        ),
        (
            "another token's payload",
            format!("{other_signed}.{signature}"),
            "token.signature",
        ),
        (
            "half a signature",
            format!("{signed}.{}", &signature[..signature.len() / 2]),
            "token.signature",
        ),
        ("no signature", format!("{signed}."), "token.malformed"),
    ] {
        assert_eq!(fixture.rejection(&changed).await, Some(code), "{case}");
    }
    assert_eq!(fixture.rejection(&token).await, None);
}

/// C3: a token without `kid` is verified only if exactly one key matches.
#[tokio::test(start_paused = true)]
async fn a_token_without_kid_needs_exactly_one_key() {
    let fixture = ready().await;
    let token = fixture.test_issuer.token().without_header("kid");
    assert_eq!(fixture.rejection(&token.sign()).await, None);

    let second = SigningKey::generate(Algorithm::Rs256, "second").unwrap();
    fixture.fake.serve(
        fixture.test_issuer.endpoint("jwks"),
        200,
        TestIssuer::jwks_of(&[&fixture.test_issuer.key(), &second]),
    );
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(
        fixture.rejection(&token.sign()).await,
        Some("token.key_ambiguous")
    );
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );

    let ec = SigningKey::generate(Algorithm::Es256, "ec").unwrap();
    fixture.fake.serve(
        fixture.test_issuer.endpoint("jwks"),
        200,
        TestIssuer::jwks_of(&[&ec]),
    );
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(
        fixture.rejection(&token.sign()).await,
        Some("token.key_unknown")
    );
}

/// C10: fixed keys are used without a fetch.
#[tokio::test(start_paused = true)]
async fn fixed_keys_need_no_fetch() {
    let test_issuer = TestIssuer::new(OTHER);
    let clock = ManualClock::new();
    let mut settings = IssuerSettings::new(test_issuer.issuer().clone());
    settings.keys =
        crate::KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
    let issuer = trusted(settings, &ScriptedFetch::new(), &clock, Handle::current());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![issuer], &clock);
    let verified = verifier
        .verify(&AccessToken::new(test_issuer.token().sign()))
        .await
        .unwrap();
    assert_eq!(verified.principal().issuer(), test_issuer.issuer());
}
