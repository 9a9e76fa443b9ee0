//! Tests of the verifier.

use std::time::Duration;

use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::JwkSet;
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, flip_payload, flip_signature};
use serde_json::json;
use tokio::runtime::Handle;

use super::*;
use crate::{
    IssuerSettings,
    testing::{Bench, Logged, trusted, verifier_of},
};

mod cache;
mod redaction;
mod throttle;

const OTHER: &str = "https://other.example";

/// Returns a bench whose issuer has its keys.
async fn ready() -> Bench {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    bench
}

fn allowing(algorithms: impl IntoIterator<Item = Algorithm>) -> impl FnOnce(&mut IssuerSettings) {
    let algorithms = algorithms.into_iter().collect();
    move |settings| settings.algorithms = algorithms
}

/// Returns a bench that also accepts tokens of another issuer, whose key has the same identifier.
async fn with_other_issuer() -> (Bench, TestIssuer, Arc<TrustedIssuer>) {
    let mut bench = ready().await;
    let other = TestIssuer::new(OTHER).with_clock(bench.clock.clone());
    assert_eq!(other.key().kid(), bench.test_issuer.key().kid());
    bench.fake.publish(&other);
    let issuer = trusted(IssuerSettings::new(other.issuer().clone()), &bench.fake, &bench.clock, Handle::current());
    issuer.refresh_now().await.unwrap();
    bench.verifier =
        verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&bench.issuer), Arc::clone(&issuer)], &bench.clock);
    (bench, other, issuer)
}

/// C1: tokens of all issuers of a resource are accepted.
#[tokio::test(start_paused = true)]
async fn several_issuers_serve_one_resource() {
    let (bench, other, _) = with_other_issuer().await;
    for test_issuer in [&bench.test_issuer, &other] {
        let verified = bench.verify(&test_issuer.token().sign()).await.unwrap();
        assert_eq!(verified.principal().issuer(), test_issuer.issuer());
        assert_eq!(verified.principal().subject(), Some("alice"));
    }
}

/// C1, C2: the issuer is selected before the key. A key is not used for another issuer, even with the same identifier.
#[tokio::test(start_paused = true)]
async fn a_key_is_used_for_its_own_issuer_only() {
    let (bench, other, _) = with_other_issuer().await;
    assert_eq!(bench.refusal(&bench.test_issuer.token().issuer(OTHER).sign()).await, Some("token.signature"));
    assert_eq!(
        bench.refusal(&other.token().issuer(bench.test_issuer.issuer().as_str()).sign()).await,
        Some("token.signature")
    );
}

/// C1, C2: the allowed algorithms of one issuer do not apply to another.
#[tokio::test(start_paused = true)]
async fn algorithms_apply_to_one_issuer() {
    let (bench, other, _) = with_other_issuer().await;
    let ec = TestIssuer::new("https://ec.example").with_algorithm(Algorithm::Es256).with_clock(bench.clock.clone());
    bench.fake.publish(&ec);
    let mut settings = IssuerSettings::new(ec.issuer().clone());
    settings.algorithms = [Algorithm::Es256].into_iter().collect();
    let issuer = trusted(settings, &bench.fake, &bench.clock, Handle::current());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&bench.issuer), issuer], &bench.clock);
    let code = async |token: String| verifier.verify(&AccessToken::new(token)).await.err().map(|error| error.code());
    assert_eq!(code(ec.token().sign()).await, None);
    assert_eq!(code(bench.test_issuer.token().sign()).await, None);
    let crossed = bench.test_issuer.token().signed_by(bench.test_issuer.key_for(Algorithm::Es256)).sign();
    assert_eq!(code(crossed).await, Some("token.algorithm_not_allowed"));
    assert_eq!(code(other.token().sign()).await, Some("token.issuer_unknown"));
}

/// C1: a verifier without issuers or with duplicates is rejected.
#[tokio::test(start_paused = true)]
async fn issuers_are_unique() {
    let bench = Bench::new();
    let refusal = |issuers| {
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        Verifier::new(settings, issuers, Arc::new(bench.clock.clone())).unwrap_err().code()
    };
    assert_eq!(refusal(vec![]), "settings.no_issuer");
    assert_eq!(refusal(vec![Arc::clone(&bench.issuer), Arc::clone(&bench.issuer)]), "settings.duplicate_issuer");
}

/// C1, C5: keys are fetched only from configured issuers, for tokens that name them byte for byte.
#[tokio::test(start_paused = true)]
async fn only_configured_issuers_are_called() {
    let bench = Bench::new();
    for iss in
        ["https://issuer.example/", "https://ISSUER.example", "https://evil.example", "https://issuer.example:443", ""]
    {
        assert_eq!(
            bench.refusal(&bench.test_issuer.token().issuer(iss).sign()).await,
            Some("token.issuer_unknown"),
            "{iss}"
        );
    }
    assert_eq!(bench.refusal(&bench.test_issuer.token().without("iss").sign()).await, Some("token.issuer_missing"));
    for iss in [json!(7), json!(["https://issuer.example"]), json!({})] {
        assert_eq!(bench.refusal(&bench.test_issuer.token().claim("iss", iss).sign()).await, Some("claims.type"));
    }
    let twice = r#"{"iss":"https://evil.example","iss":"https://issuer.example"}"#;
    assert!(bench.refusal(&bench.test_issuer.token().raw_payload(twice).sign()).await.is_some());
    assert!(bench.fake.urls().is_empty());
}

/// C2: every supported algorithm is accepted if it is allowed, and otherwise rejected without a fetch.
#[tokio::test(start_paused = true)]
async fn algorithms_are_configured() {
    for algorithm in Algorithm::ALL {
        let bench = Bench::with(allowing([algorithm]));
        let key = bench.test_issuer.key_for(algorithm);
        bench.fake.serve(bench.test_issuer.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&key]));
        let token = bench.test_issuer.token().signed_by(Arc::clone(&key)).sign();
        assert_eq!(bench.refusal(&token).await, None, "{algorithm}");

        let others = Algorithm::ALL.into_iter().filter(|other| *other != algorithm);
        let bench = Bench::with(allowing(others));
        bench.fake.serve(bench.test_issuer.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&key]));
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_not_allowed"), "{algorithm}");
        assert!(bench.fake.urls().is_empty());
    }
}

/// C2: only RS256 is allowed by default.
#[tokio::test(start_paused = true)]
async fn rs256_is_the_default() {
    let bench = Bench::new();
    assert_eq!(bench.refusal(&bench.test_issuer.token().sign()).await, None);
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Rs256) {
        let token = bench.test_issuer.token().alg(algorithm.as_str()).sign();
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_not_allowed"), "{algorithm}");
    }
}

/// C2: unsigned tokens with any spelling of `none`, and algorithm confusion, are rejected.
#[tokio::test(start_paused = true)]
async fn unsigned_and_confused_tokens_are_rejected() {
    let bench = ready().await;
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let code = bench.refusal(&bench.test_issuer.token().unsigned(none)).await;
        assert!(matches!(code, Some("token.malformed" | "token.algorithm_unsupported")), "{none}: {code:?}");
        assert_eq!(
            bench.refusal(&bench.test_issuer.token().alg(none).sign()).await,
            Some("token.algorithm_unsupported")
        );
    }
    for token in bench.test_issuer.token().hmac_with_public_key() {
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_unsupported"));
    }
    for alg in ["HS384", "HS512", "ES256K", "RSA-OAEP", "dir"] {
        assert_eq!(
            bench.refusal(&bench.test_issuer.token().alg(alg).sign()).await,
            Some("token.algorithm_unsupported"),
            "{alg}"
        );
    }
}

/// C2: keys in the header of a token are never used.
#[tokio::test(start_paused = true)]
async fn keys_never_come_from_a_token() {
    let bench = ready().await;
    let attacker = Arc::new(SigningKey::generate(Algorithm::Rs256, "attacker").unwrap());
    assert_eq!(bench.refusal(&bench.test_issuer.token().self_signed(&attacker)).await, Some("token.signature"));
    for (member, value) in [
        ("jku", json!("https://evil.example/jwks")),
        ("x5u", json!("https://evil.example/cert")),
        ("x5c", json!(["MIIB"])),
        ("jwk", attacker.public_jwk()),
    ] {
        let stolen = bench.test_issuer.token().signed_by(Arc::clone(&attacker)).header(member, value.clone());
        assert_eq!(
            bench.refusal(&stolen.clone().kid(bench.test_issuer.key().kid()).sign()).await,
            Some("token.signature")
        );
        assert_eq!(bench.refusal(&stolen.sign()).await, Some("token.key_unknown"));
        assert_eq!(bench.refusal(&bench.test_issuer.token().header(member, value).sign()).await, None);
    }
    assert!(bench.fake.urls().iter().all(|url| url.host_str() == Some("issuer.example")));
}

/// C2: extensions, encryption and duplicate members are rejected. Unknown members are ignored.
#[tokio::test(start_paused = true)]
async fn the_header_is_parsed_strictly() {
    let bench = ready().await;
    let kid = bench.test_issuer.key().kid().to_owned();
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
            bench.refusal(&bench.test_issuer.token().header(member, value).sign()).await,
            Some(code),
            "{member}"
        );
    }
    for value in [json!({ "a": [1] }), json!(null), json!(1e300)] {
        assert_eq!(bench.refusal(&bench.test_issuer.token().header("x", value).sign()).await, None);
    }
    let twice = format!(r#"{{"alg":"none","alg":"RS256","kid":"{kid}"}}"#);
    assert_eq!(
        bench.refusal(&bench.test_issuer.token().raw_header(twice).sign()).await,
        Some("token.header_duplicate")
    );
}

/// C2: a token with one changed bit is rejected.
#[tokio::test(start_paused = true)]
async fn a_modified_token_is_rejected() {
    let bench = ready().await;
    let token = bench.test_issuer.token().claim("x", "yyy").sign();
    assert_eq!(bench.refusal(&flip_signature(&token)).await, Some("token.signature"));
    assert!(bench.refusal(&flip_payload(&token)).await.is_some());
    assert_eq!(bench.refusal(&token).await, None);
}

/// C2: strings that are not signed JWTs are malformed, and no issuer is called.
#[tokio::test(start_paused = true)]
async fn other_strings_are_malformed() {
    let bench = Bench::new();
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
        assert!(bench.refusal(token).await.is_some(), "{token:?}");
    }
    assert_eq!(bench.refusal("opaque").await, Some("token.malformed"));
    assert_eq!(bench.refusal("a.b.c.d.e").await, Some("token.encrypted"));
    for payload in ["", "7", "[]", "\"x\"", "{", "{}x", "[\"https://issuer.example\"]"] {
        let code = bench.refusal(&bench.test_issuer.token().raw_payload(payload).sign()).await;
        assert_eq!(code, Some("claims.not_an_object"), "{payload}");
    }
    assert!(bench.fake.urls().is_empty());
}

/// C3: a token without `kid` is verified only if exactly one key matches.
#[tokio::test(start_paused = true)]
async fn a_token_without_kid_needs_exactly_one_key() {
    let bench = ready().await;
    let token = bench.test_issuer.token().without_header("kid");
    assert_eq!(bench.refusal(&token.sign()).await, None);

    let second = SigningKey::generate(Algorithm::Rs256, "second").unwrap();
    bench.fake.serve(
        bench.test_issuer.endpoint("jwks"),
        200,
        TestIssuer::jwks_of(&[&bench.test_issuer.key(), &second]),
    );
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token.sign()).await, Some("token.key_ambiguous"));
    assert_eq!(bench.refusal(&bench.test_issuer.token().sign()).await, None);

    let ec = SigningKey::generate(Algorithm::Es256, "ec").unwrap();
    bench.fake.serve(bench.test_issuer.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&ec]));
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token.sign()).await, Some("token.key_unknown"));
}

/// C4: the header's type is checked with the issuer's settings.
#[tokio::test(start_paused = true)]
async fn the_type_is_checked() {
    let bench = ready().await;
    assert_eq!(bench.refusal(&bench.test_issuer.token().typ("JWT").sign()).await, None);
    assert_eq!(bench.refusal(&bench.test_issuer.token().without_header("typ").sign()).await, None);
    assert_eq!(
        bench.refusal(&bench.test_issuer.token().typ("logout+jwt").sign()).await,
        Some("token.type_not_allowed")
    );
    let bench = Bench::with(|settings| settings.require_at_jwt = true);
    assert_eq!(bench.refusal(&bench.test_issuer.token().typ("JWT").sign()).await, Some("token.type_not_allowed"));
    assert_eq!(bench.refusal(&bench.test_issuer.token().typ("application/AT+JWT").sign()).await, None);
}

/// C4, C6, C13: claims are validated, with one code for each rule.
#[tokio::test(start_paused = true)]
async fn claims_are_validated() {
    let bench = ready().await;
    let token = || bench.test_issuer.token();
    for (token, code) in [
        (token().claim("at_hash", "x"), "token.not_an_access_token"),
        (token().claim("typ", "Refresh"), "token.not_an_access_token"),
        (token().claim("cnf", json!({ "jkt": "x" })), "token.sender_constrained"),
        (token().without("aud"), "token.audience_missing"),
        (token().audience("https://mcp.example.com"), "token.audience_mismatch"),
        (token().without("exp"), "token.expiry_missing"),
        (token().expires_in(-10), "token.expired"),
        (token().not_before_in(11), "token.not_yet_valid"),
        (token().issued_in(11), "token.issued_in_future"),
        (token().claim("exp", 1e300), "claims.date"),
        (token().claim("exp", -1), "claims.date"),
    ] {
        assert_eq!(bench.refusal(&token.sign()).await, Some(code));
    }
}

/// C2: a duplicate claim is rejected even in a signed token.
#[tokio::test(start_paused = true)]
async fn duplicate_claims_are_rejected() {
    let bench = ready().await;
    let exp = ManualClock::START.as_secs() + 300;
    let payload = |more: &str| {
        format!(r#"{{"iss":"https://issuer.example","aud":"{}","exp":{exp}{more}}}"#, TestIssuer::RESOURCE)
    };
    let code = async |more| bench.refusal(&bench.test_issuer.token().raw_payload(payload(more)).sign()).await;
    assert_eq!(code("").await, None);
    for more in [r#","aud":"x""#, r#","exp":1"#, r#","x":1,"x":2"#, r#","\u0061ud":"x""#] {
        assert_eq!(code(more).await, Some("claims.not_an_object"), "{more}");
    }
}

/// C9: a token above the limit is rejected before it is parsed.
#[tokio::test(start_paused = true)]
async fn size_is_checked_first() {
    let bench = ready().await;
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024 + 1)).await, Some("token.too_large"));
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024)).await, Some("token.malformed"));

    let token = bench.test_issuer.token().sign();
    for (limit, expected) in [(token.len(), None), (token.len() - 1, Some("token.too_large"))] {
        let mut settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        settings.max_token_bytes = limit;
        let verifier = Verifier::new(settings, vec![Arc::clone(&bench.issuer)], Arc::new(bench.clock.clone())).unwrap();
        let result = verifier.verify(&AccessToken::new(token.as_str())).await;
        assert_eq!(result.err().map(|error| error.code()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_future_is_send() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let bench = ready().await;
    let token = AccessToken::new(bench.test_issuer.token().sign());
    assert!(sendable(bench.verifier.verify(&token)).await.is_ok());
}

/// C10: fixed keys are used without a fetch.
#[tokio::test(start_paused = true)]
async fn fixed_keys_need_no_fetch() {
    let test_issuer = TestIssuer::new(OTHER);
    let clock = ManualClock::new();
    let mut settings = IssuerSettings::new(test_issuer.issuer().clone());
    settings.keys = crate::KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
    let issuer = trusted(settings, &ScriptedFetch::new(), &clock, Handle::current());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![issuer], &clock);
    let verified = verifier.verify(&AccessToken::new(test_issuer.token().sign())).await.unwrap();
    assert_eq!(verified.principal().issuer(), test_issuer.issuer());
}

/// C10: only errors for tokens that were not verified have a `retry_after`.
#[test]
fn only_unavailable_errors_have_a_retry_time() {
    let second = Duration::from_secs(1);
    for error in [VerifyError::IssuerUnavailable { retry_after: second }, VerifyError::Busy] {
        assert!(error.is_unavailable() && error.retry_after() == Some(second), "{error}");
    }
    for error in [VerifyError::Expired, VerifyError::Inactive, VerifyError::Jws(JoseError::UnknownKey)] {
        assert!(!error.is_unavailable() && error.retry_after().is_none(), "{error}");
    }
}
