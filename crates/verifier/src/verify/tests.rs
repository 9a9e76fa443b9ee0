//! Issuers, algorithms and keys are separate, and keys never come from a token.

use std::time::Duration;

use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::JwkSet;
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, flip_payload, flip_signature};
use serde_json::json;
use tokio::runtime::Handle;

use super::*;
use crate::{
    IssuerSettings,
    testing::{Fixture, Logged, trusted, verifier_of},
};

mod cache;
mod inactive;
mod issuers;
mod redaction;
mod revoked;
mod throttle;

const OTHER: &str = "https://other.example";

/// Returns a fixture whose issuer has its keys.
async fn ready() -> Fixture {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fixture
}

fn allowing(algorithms: impl IntoIterator<Item = Algorithm>) -> impl FnOnce(&mut IssuerSettings) {
    let algorithms = algorithms.into_iter().collect();
    move |settings| settings.algorithms = algorithms
}

/// Returns a fixture that also accepts tokens of another issuer, whose key has the same identifier.
async fn with_other_issuer() -> (Fixture, TestIssuer, Arc<TrustedIssuer>) {
    let mut fixture = ready().await;
    let other = TestIssuer::new(OTHER).with_clock(fixture.clock.clone());
    assert_eq!(other.key().kid(), fixture.test_issuer.key().kid());
    fixture.fake.publish(&other);
    let issuer = trusted(
        IssuerSettings::new(other.issuer().clone()),
        &fixture.fake,
        &fixture.clock,
        Handle::current(),
    );
    issuer.refresh_now().await.unwrap();
    fixture.verifier = verifier_of(
        TestIssuer::RESOURCE,
        vec![Arc::clone(&fixture.issuer), Arc::clone(&issuer)],
        &fixture.clock,
    );
    (fixture, other, issuer)
}

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

/// C2: strings that are not signed JWTs are malformed, and no issuer is called.
#[tokio::test(start_paused = true)]
async fn other_strings_are_malformed() {
    let fixture = Fixture::new();
    for token in [
        "",
        ".",
        "..",
        "...",
        "opaque",
        "a.b.c",
        "\u{0}",
        "é.é.é",
        "eyJhbGciOiJSUzI1NiJ9..x",
        "eyJhbGciOiJSUzI1NiJ9.e30.",
    ] {
        assert!(fixture.rejection(token).await.is_some(), "{token:?}");
    }
    assert_eq!(fixture.rejection("opaque").await, Some("token.malformed"));
    assert_eq!(
        fixture.rejection("a.b.c.d.e").await,
        Some("token.encrypted")
    );

    for payload in [
        "",
        "7",
        "[]",
        "\"x\"",
        "{",
        "{}x",
        "[\"https://issuer.example\"]",
    ] {
        let code = fixture
            .rejection(&fixture.test_issuer.token().raw_payload(payload).sign())
            .await;
        assert_eq!(code, Some("claims.not_an_object"), "{payload}");
    }
    assert!(fixture.fake.urls().is_empty());
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

/// C4: the header's type is checked with the issuer's settings.
#[tokio::test(start_paused = true)]
async fn the_type_is_checked() {
    let fixture = ready().await;
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("JWT").sign())
            .await,
        None
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().without_header("typ").sign())
            .await,
        None
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("logout+jwt").sign())
            .await,
        Some("token.type_not_allowed")
    );
    let fixture = Fixture::with(|settings| settings.require_at_jwt = true);
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("JWT").sign())
            .await,
        Some("token.type_not_allowed")
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("application/AT+JWT").sign())
            .await,
        None
    );
}

/// C4, C6, C13: claims are validated, with one code for each rule.
#[tokio::test(start_paused = true)]
async fn claims_are_validated() {
    let fixture = ready().await;
    let token = || fixture.test_issuer.token();
    for (token, code) in [
        (token().claim("at_hash", "x"), "token.not_an_access_token"),
        (token().claim("typ", "Refresh"), "token.not_an_access_token"),
        (
            token().claim("cnf", json!({ "jkt": "x" })),
            "token.sender_constrained",
        ),
        (token().without("aud"), "token.audience_missing"),
        (
            token().audience("https://mcp.example.com"),
            "token.audience_mismatch",
        ),
        (token().without("exp"), "token.expiry_missing"),
        (token().expires_in(-10), "token.expired"),
        (token().not_before_in(11), "token.not_yet_valid"),
        (token().issued_in(11), "token.issued_in_future"),
        (token().claim("exp", 1e300), "claims.date"),
        (token().claim("exp", -1), "claims.date"),
    ] {
        assert_eq!(fixture.rejection(&token.sign()).await, Some(code));
    }
}

/// C2: a duplicate claim is rejected even in a signed token.
#[tokio::test(start_paused = true)]
async fn duplicate_claims_are_rejected() {
    let fixture = ready().await;
    let exp = ManualClock::START.as_secs() + 300;
    let payload = |more: &str| {
        format!(
            r#"{{"iss":"https://issuer.example","aud":"{}","exp":{exp}{more}}}"#,
            TestIssuer::RESOURCE
        )
    };
    let code = async |more| {
        fixture
            .rejection(
                &fixture
                    .test_issuer
                    .token()
                    .raw_payload(payload(more))
                    .sign(),
            )
            .await
    };
    assert_eq!(code("").await, None);
    for more in [
        r#","iss":"https://issuer.example""#,
        r#","iss":"https://attacker.example""#,
        r#","\u0069ss":"https://attacker.example""#,
        r#","aud":"x""#,
        r#","exp":1"#,
        r#","x":1,"x":2"#,
        r#","\u0061ud":"x""#,
        r#","sub":"alice","sub":"mallory""#,
        r#","scope":"a","scope":"b""#,
        r#","cnf":null,"cnf":{"jkt":"x"}"#,
    ] {
        assert_eq!(code(more).await, Some("claims.not_an_object"), "{more}");
    }
}

/// C9: a token above the limit is rejected before it is parsed.
#[tokio::test(start_paused = true)]
async fn size_is_checked_first() {
    let fixture = ready().await;
    assert_eq!(
        fixture.rejection(&"x".repeat(16 * 1024 + 1)).await,
        Some("token.too_large")
    );
    assert_eq!(
        fixture.rejection(&"x".repeat(16 * 1024)).await,
        Some("token.malformed")
    );

    let token = fixture.test_issuer.token().sign();
    for (limit, expected) in [
        (token.len(), None),
        (token.len() - 1, Some("token.too_large")),
    ] {
        let mut settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        settings.max_token_bytes = limit;
        let verifier = Verifier::new(
            settings,
            vec![Arc::clone(&fixture.issuer)],
            Arc::new(fixture.clock.clone()),
        )
        .unwrap();
        let result = verifier.verify(&AccessToken::new(token.as_str())).await;
        assert_eq!(result.err().map(|error| error.code()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_future_is_send() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let fixture = ready().await;
    let token = AccessToken::new(fixture.test_issuer.token().sign());
    assert!(sendable(fixture.verifier.verify(&token)).await.is_ok());
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

/// C10: only errors for tokens that were not verified have a `retry_after`.
#[test]
fn only_unavailable_errors_have_a_retry_time() {
    let second = Duration::from_secs(1);
    for error in [
        VerifyError::IssuerUnavailable {
            retry_after: second,
        },
        VerifyError::IntrospectionBusy,
        VerifyError::Busy,
    ] {
        assert!(error.is_unavailable(), "{error}");
        assert!(error.retry_after() == Some(second), "{error}");
    }
    for error in [
        VerifyError::Expired,
        VerifyError::Inactive,
        VerifyError::Jws(JoseError::UnknownKey),
    ] {
        assert!(!error.is_unavailable(), "{error}");
        assert!(error.retry_after().is_none(), "{error}");
    }
}
