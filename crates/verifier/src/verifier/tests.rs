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

/// A bench whose issuer's keys are held, so that nothing is fetched for its tokens.
async fn ready() -> Bench {
    let bench = Bench::new();
    bench.issuer.refresh_now().await.unwrap();
    bench
}

fn allowing(algorithms: impl IntoIterator<Item = Algorithm>) -> impl FnOnce(&mut IssuerSettings) {
    let algorithms = algorithms.into_iter().collect();
    move |settings| settings.algorithms = algorithms
}

/// A bench that also takes tokens of another issuer, whose key has the same identifier.
async fn with_other_issuer() -> (Bench, TestIssuer, Arc<TrustedIssuer>) {
    let mut bench = ready().await;
    let other = TestIssuer::new(OTHER).with_clock(bench.clock.clone());
    assert_eq!(other.key().kid(), bench.forge.key().kid());
    bench.fake.publish(&other);
    let issuer = trusted(IssuerSettings::new(other.issuer().clone()), &bench.fake, &bench.clock, Handle::current());
    issuer.refresh_now().await.unwrap();
    bench.verifier =
        verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&bench.issuer), Arc::clone(&issuer)], &bench.clock);
    (bench, other, issuer)
}

/// C1: tokens of each of the resource's issuers are accepted, each for its own.
#[tokio::test(start_paused = true)]
async fn several_issuers_serve_one_resource() {
    let (bench, other, _) = with_other_issuer().await;
    for forge in [&bench.forge, &other] {
        let verified = bench.verify(&forge.token().sign()).await.unwrap();
        assert_eq!(verified.principal().issuer(), forge.issuer());
        assert_eq!(verified.principal().subject(), Some("alice"));
    }
}

/// C1, C2: the issuer is chosen before the key: one issuer's key counts for nothing in another's name, though the
/// key identifiers are the same.
#[tokio::test(start_paused = true)]
async fn a_key_counts_for_its_own_issuer() {
    let (bench, other, _) = with_other_issuer().await;
    assert_eq!(bench.refusal(&bench.forge.token().issuer(OTHER).sign()).await, Some("token.signature"));
    assert_eq!(
        bench.refusal(&other.token().issuer(bench.forge.issuer().as_str()).sign()).await,
        Some("token.signature")
    );
}

/// C1, C2: so do algorithms: what one issuer may sign with is not allowed for another.
#[tokio::test(start_paused = true)]
async fn algorithms_are_each_issuers_own() {
    let (bench, other, _) = with_other_issuer().await;
    let ec = TestIssuer::new("https://ec.example").with_algorithm(Algorithm::Es256).with_clock(bench.clock.clone());
    bench.fake.publish(&ec);
    let mut settings = IssuerSettings::new(ec.issuer().clone());
    settings.algorithms = [Algorithm::Es256].into_iter().collect();
    let issuer = trusted(settings, &bench.fake, &bench.clock, Handle::current());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![Arc::clone(&bench.issuer), issuer], &bench.clock);
    let code = async |token: String| verifier.verify(&AccessToken::new(token)).await.err().map(|error| error.code());
    assert_eq!(code(ec.token().sign()).await, None);
    assert_eq!(code(bench.forge.token().sign()).await, None);
    let crossed = bench.forge.token().signed_by(bench.forge.key_for(Algorithm::Es256)).sign();
    assert_eq!(code(crossed).await, Some("token.algorithm_not_allowed"));
    assert_eq!(code(other.token().sign()).await, Some("token.issuer_unknown"));
}

/// C1: a resource without issuers, or with one twice, is refused.
#[tokio::test(start_paused = true)]
async fn issuers_are_named_once() {
    let bench = Bench::new();
    let refusal = |issuers| {
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        Verifier::new(settings, issuers, Arc::new(bench.clock.clone())).unwrap_err().code()
    };
    assert_eq!(refusal(vec![]), "settings.no_issuer");
    assert_eq!(refusal(vec![Arc::clone(&bench.issuer), Arc::clone(&bench.issuer)]), "settings.duplicate_issuer");
}

/// C1, C5: only a configured issuer is asked for keys, and only for tokens that name it byte for byte.
#[tokio::test(start_paused = true)]
async fn nobody_else_is_asked() {
    let bench = Bench::new();
    for iss in
        ["https://issuer.example/", "https://ISSUER.example", "https://evil.example", "https://issuer.example:443", ""]
    {
        assert_eq!(bench.refusal(&bench.forge.token().issuer(iss).sign()).await, Some("token.issuer_unknown"), "{iss}");
    }
    assert_eq!(bench.refusal(&bench.forge.token().without("iss").sign()).await, Some("token.issuer_missing"));
    for iss in [json!(7), json!(["https://issuer.example"]), json!({})] {
        assert_eq!(bench.refusal(&bench.forge.token().claim("iss", iss).sign()).await, Some("claims.type"));
    }
    let twice = r#"{"iss":"https://evil.example","iss":"https://issuer.example"}"#;
    assert!(bench.refusal(&bench.forge.token().raw_payload(twice).sign()).await.is_some());
    assert!(bench.fake.urls().is_empty());
}

/// C2: every supported algorithm verifies when it is configured, and is refused when it is not, before anybody is asked.
#[tokio::test(start_paused = true)]
async fn algorithms_are_configured() {
    for algorithm in Algorithm::ALL {
        let bench = Bench::with(allowing([algorithm]));
        let key = bench.forge.key_for(algorithm);
        bench.fake.serve(bench.forge.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&key]));
        let token = bench.forge.token().signed_by(Arc::clone(&key)).sign();
        assert_eq!(bench.refusal(&token).await, None, "{algorithm}");

        let others = Algorithm::ALL.into_iter().filter(|other| *other != algorithm);
        let bench = Bench::with(allowing(others));
        bench.fake.serve(bench.forge.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&key]));
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_not_allowed"), "{algorithm}");
        assert!(bench.fake.urls().is_empty());
    }
}

/// C2: only RS256 is allowed unless more is configured.
#[tokio::test(start_paused = true)]
async fn rs256_is_the_default() {
    let bench = Bench::new();
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Rs256) {
        let token = bench.forge.token().alg(algorithm.as_str()).sign();
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_not_allowed"), "{algorithm}");
    }
}

/// C2: unsigned tokens, in every spelling of `none`, and the algorithm confusion attack are refused.
#[tokio::test(start_paused = true)]
async fn unsigned_and_confused_tokens_are_refused() {
    let bench = ready().await;
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let code = bench.refusal(&bench.forge.token().unsigned(none)).await;
        assert!(matches!(code, Some("token.malformed" | "token.algorithm_unsupported")), "{none}: {code:?}");
        assert_eq!(bench.refusal(&bench.forge.token().alg(none).sign()).await, Some("token.algorithm_unsupported"));
    }
    for token in bench.forge.token().hmac_with_public_key() {
        assert_eq!(bench.refusal(&token).await, Some("token.algorithm_unsupported"));
    }
    for alg in ["HS384", "HS512", "ES256K", "RSA-OAEP", "dir"] {
        assert_eq!(
            bench.refusal(&bench.forge.token().alg(alg).sign()).await,
            Some("token.algorithm_unsupported"),
            "{alg}"
        );
    }
}

/// C2: a key in the token's own header is never used; header members that only describe one are ignored.
#[tokio::test(start_paused = true)]
async fn keys_never_come_from_a_token() {
    let bench = ready().await;
    let attacker = Arc::new(SigningKey::generate(Algorithm::Rs256, "attacker").unwrap());
    assert_eq!(bench.refusal(&bench.forge.token().self_signed(&attacker)).await, Some("token.signature"));
    for (member, value) in [
        ("jku", json!("https://evil.example/jwks")),
        ("x5u", json!("https://evil.example/cert")),
        ("x5c", json!(["MIIB"])),
        ("jwk", attacker.public_jwk()),
    ] {
        let stolen = bench.forge.token().signed_by(Arc::clone(&attacker)).header(member, value.clone());
        assert_eq!(bench.refusal(&stolen.clone().kid(bench.forge.key().kid()).sign()).await, Some("token.signature"));
        assert_eq!(bench.refusal(&stolen.sign()).await, Some("token.key_unknown"));
        assert_eq!(bench.refusal(&bench.forge.token().header(member, value).sign()).await, None);
    }
    assert!(bench.fake.urls().iter().all(|url| url.host_str() == Some("issuer.example")));
}

/// C2: extensions, encryption and repeated members are refused; unknown members of any type are not.
#[tokio::test(start_paused = true)]
async fn the_header_is_read_strictly() {
    let bench = ready().await;
    let kid = bench.forge.key().kid().to_owned();
    for (member, value, code) in [
        ("crit", json!(["exp"]), "token.header_extension"),
        ("crit", json!([]), "token.header_extension"),
        ("b64", json!(false), "token.header_extension"),
        ("b64", json!(true), "token.header_extension"),
        ("enc", json!("A128GCM"), "token.encrypted"),
        ("kid", json!(7), "token.header_malformed"),
        ("typ", json!(["at+jwt"]), "token.header_malformed"),
    ] {
        assert_eq!(bench.refusal(&bench.forge.token().header(member, value).sign()).await, Some(code), "{member}");
    }
    for value in [json!({ "a": [1] }), json!(null), json!(1e300)] {
        assert_eq!(bench.refusal(&bench.forge.token().header("x", value).sign()).await, None);
    }
    let twice = format!(r#"{{"alg":"none","alg":"RS256","kid":"{kid}"}}"#);
    assert_eq!(bench.refusal(&bench.forge.token().raw_header(twice).sign()).await, Some("token.header_duplicate"));
}

/// C2: one changed bit of payload or signature is one too many.
#[tokio::test(start_paused = true)]
async fn a_changed_token_is_refused() {
    let bench = ready().await;
    let token = bench.forge.token().claim("x", "yyy").sign();
    assert_eq!(bench.refusal(&flip_signature(&token)).await, Some("token.signature"));
    assert!(bench.refusal(&flip_payload(&token)).await.is_some());
    assert_eq!(bench.refusal(&token).await, None);
}

/// C2: what is no signed JWT at all is malformed, and nobody is asked about it.
#[tokio::test(start_paused = true)]
async fn rubbish_is_malformed() {
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
        let code = bench.refusal(&bench.forge.token().raw_payload(payload).sign()).await;
        assert_eq!(code, Some("claims.not_an_object"), "{payload}");
    }
    assert!(bench.fake.urls().is_empty());
}

/// C3: without `kid` a token is tried only when exactly one published key fits.
#[tokio::test(start_paused = true)]
async fn a_token_without_kid_needs_exactly_one_key() {
    let bench = ready().await;
    let token = bench.forge.token().without_header("kid");
    assert_eq!(bench.refusal(&token.sign()).await, None);

    let second = SigningKey::generate(Algorithm::Rs256, "second").unwrap();
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&bench.forge.key(), &second]));
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token.sign()).await, Some("token.key_ambiguous"));
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, None);

    let ec = SigningKey::generate(Algorithm::Es256, "ec").unwrap();
    bench.fake.serve(bench.forge.endpoint("jwks"), 200, TestIssuer::jwks_of(&[&ec]));
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(&token.sign()).await, Some("token.key_unknown"));
}

/// C4: the header's type is judged by the issuer's settings.
#[tokio::test(start_paused = true)]
async fn the_type_is_judged() {
    let bench = ready().await;
    assert_eq!(bench.refusal(&bench.forge.token().typ("JWT").sign()).await, None);
    assert_eq!(bench.refusal(&bench.forge.token().without_header("typ").sign()).await, None);
    assert_eq!(bench.refusal(&bench.forge.token().typ("logout+jwt").sign()).await, Some("token.type_not_allowed"));
    let bench = Bench::with(|settings| settings.require_at_jwt = true);
    assert_eq!(bench.refusal(&bench.forge.token().typ("JWT").sign()).await, Some("token.type_not_allowed"));
    assert_eq!(bench.refusal(&bench.forge.token().typ("application/AT+JWT").sign()).await, None);
}

/// C4, C6, C13: the rules for signed claims hold here too, with their own codes.
#[tokio::test(start_paused = true)]
async fn claims_are_judged() {
    let bench = ready().await;
    let token = || bench.forge.token();
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

/// C2: a claim that is there twice is refused, though it is signed.
#[tokio::test(start_paused = true)]
async fn repeated_claims_are_refused() {
    let bench = ready().await;
    let exp = ManualClock::START.as_secs() + 300;
    let payload = |more: &str| {
        format!(r#"{{"iss":"https://issuer.example","aud":"{}","exp":{exp}{more}}}"#, TestIssuer::RESOURCE)
    };
    let code = async |more| bench.refusal(&bench.forge.token().raw_payload(payload(more)).sign()).await;
    assert_eq!(code("").await, None);
    for more in [r#","aud":"x""#, r#","exp":1"#, r#","x":1,"x":2"#, r#","\u0061ud":"x""#] {
        assert_eq!(code(more).await, Some("claims.not_an_object"), "{more}");
    }
}

/// C9: a token over the limit is refused before it is parsed, one at the limit is not.
#[tokio::test(start_paused = true)]
async fn size_is_judged_first() {
    let bench = ready().await;
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024 + 1)).await, Some("token.too_large"));
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024)).await, Some("token.malformed"));

    let token = bench.forge.token().sign();
    for (limit, expected) in [(token.len(), None), (token.len() - 1, Some("token.too_large"))] {
        let mut settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        settings.max_token_bytes = limit;
        let verifier = Verifier::new(settings, vec![Arc::clone(&bench.issuer)], Arc::new(bench.clock.clone())).unwrap();
        let result = verifier.verify(&AccessToken::new(token.as_str())).await;
        assert_eq!(result.err().map(|error| error.code()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_future_can_be_sent() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let bench = ready().await;
    let token = AccessToken::new(bench.forge.token().sign());
    assert!(sendable(bench.verifier.verify(&token)).await.is_ok());
}

/// C10: keys that are given for good verify without any issuer to ask.
#[tokio::test(start_paused = true)]
async fn given_keys_need_no_issuer() {
    let forge = TestIssuer::new(OTHER);
    let clock = ManualClock::new();
    let mut settings = IssuerSettings::new(forge.issuer().clone());
    settings.keys = crate::KeySource::Fixed(JwkSet::parse(forge.jwks_json().as_bytes()).unwrap());
    let issuer = trusted(settings, &ScriptedFetch::new(), &clock, Handle::current());
    let verifier = verifier_of(TestIssuer::RESOURCE, vec![issuer], &clock);
    let verified = verifier.verify(&AccessToken::new(forge.token().sign())).await.unwrap();
    assert_eq!(verified.principal().issuer(), forge.issuer());
}

/// C10: only a token that could not be judged is worth another try.
#[test]
fn only_what_was_not_judged_comes_again() {
    let second = Duration::from_secs(1);
    for error in [VerifyError::IssuerUnavailable { retry_after: second }, VerifyError::Busy] {
        assert!(error.is_unavailable() && error.retry_after() == Some(second), "{error}");
    }
    for error in [VerifyError::Expired, VerifyError::Inactive, VerifyError::Jws(JoseError::UnknownKey)] {
        assert!(!error.is_unavailable() && error.retry_after().is_none(), "{error}");
    }
}
