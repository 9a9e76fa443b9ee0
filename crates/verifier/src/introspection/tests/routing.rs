//! Which issuer judges a token, and by what.

use portcullis_metadata::ResourceUri;

use super::*;
use crate::{
    TrustedIssuer, Verifier, VerifierSettings,
    testing::{trusted, verifier_of},
};

const OTHER: &str = "https://other.example";

/// A bench with an issuer that is asked, and beside it one that is not.
fn with_jwt_issuer() -> (Bench, TestIssuer) {
    let mut bench = bench();
    let (forge, other) = other_issuer(&bench, Validation::Jwt);
    bench.verifier = verifier_of(TestIssuer::RESOURCE, vec![other, Arc::clone(&bench.issuer)], &bench.clock);
    (bench, forge)
}

fn other_issuer(bench: &Bench, validation: Validation) -> (TestIssuer, Arc<TrustedIssuer>) {
    let forge = TestIssuer::new(OTHER).with_clock(bench.clock.clone());
    bench.fake.publish(&forge);
    let mut settings = IssuerSettings::new(forge.issuer().clone());
    settings.validation = validation;
    let issuer = trusted(settings, &bench.fake, &bench.clock, Handle::current());
    (forge, issuer)
}

/// C1: an opaque token goes to the one issuer that introspects, a JWS to the issuer that it names.
#[tokio::test(start_paused = true)]
async fn tokens_go_to_their_issuer() {
    let (bench, other) = with_jwt_issuer();
    for token in [OPAQUE, "v4.local.AAAA", "a.b", "a.b.c.d.e", "-._~+/"] {
        let verified = bench.verify(token).await.unwrap();
        assert_eq!(verified.principal().issuer(), bench.forge.issuer(), "{token}");
    }
    let verified = bench.verify(&bench.forge.token().sign()).await.unwrap();
    assert_eq!(verified.principal().issuer(), bench.forge.issuer());
    assert_eq!(calls(&bench), 6);
    let verified = bench.verify(&other.token().sign()).await.unwrap();
    assert_eq!(verified.principal().issuer(), other.issuer());
    assert_eq!(bench.refusal(&other.token().issuer("https://evil.example").sign()).await, Some("token.issuer_unknown"));
    assert_eq!(bench.refusal(&other.token().without("iss").sign()).await, Some("token.issuer_missing"));
    assert_eq!(calls(&bench), 6);
    assert_eq!(bench.fake.hits(bench.forge.endpoint("jwks")), 0);
}

/// C9: a token that is too long is refused before anybody is asked about it.
#[tokio::test(start_paused = true)]
async fn nobody_is_asked_about_a_token_that_is_too_long() {
    let bench = bench();
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024 + 1)).await, Some("token.too_large"));
    assert_eq!(calls(&bench), 0);
    assert_eq!(bench.refusal(&"x".repeat(16 * 1024)).await, None);
    assert_eq!(calls(&bench), 1);
}

/// C1, C2: a JWS of an issuer that is not asked is never shown to the one that is, however it is spoiled.
#[tokio::test(start_paused = true)]
async fn nobody_is_shown_a_foreign_token() {
    let (bench, other) = with_jwt_issuer();
    for (token, code) in [
        (other.token().unsigned("none"), "token.malformed"),
        (other.token().alg("HS256").sign(), "token.algorithm_unsupported"),
        (other.token().header("crit", json!(["b64"])).sign(), "token.header_extension"),
        (other.token().issuer("https://evil.example").alg("HS256").sign(), "token.algorithm_unsupported"),
        (other.token().signed_by(bench.forge.key()).sign(), "token.signature"),
    ] {
        assert_eq!(bench.refusal(&token).await, Some(code));
    }
    assert_eq!(calls(&bench), 0);
}

/// C1: an issuer that is asked judges its own tokens whatever their header says: no key of it is used here.
#[tokio::test(start_paused = true)]
async fn its_own_tokens_are_the_issuers_to_judge() {
    let bench = bench();
    for token in [bench.forge.token().alg("HS256").sign(), bench.forge.token().header("crit", json!(["x"])).sign()] {
        assert_eq!(bench.refusal(&token).await, None);
    }
    says(&bench, &json!({"active": false}));
    assert_eq!(bench.refusal(&bench.forge.token().sign()).await, Some("token.inactive"));
    assert_eq!(calls(&bench), 3);
}

/// C1: so are its claims: what would refuse a token that is verified here says nothing where the issuer is asked.
#[tokio::test(start_paused = true)]
async fn claims_are_the_issuers_to_judge() {
    let bench = bench();
    for (claim, value) in [("sub", json!(7)), ("aud", json!(7)), ("exp", json!("soon")), ("scope", json!([7]))] {
        assert_eq!(bench.refusal(&bench.forge.token().claim(claim, value).sign()).await, None, "{claim}");
    }
    assert_eq!(calls(&bench), 4);
}

/// C4: the header's type is judged where it can be read, and `at+jwt` can be required of an issuer that is asked.
#[tokio::test(start_paused = true)]
async fn header_types_are_judged() {
    let bench = bench();
    assert_eq!(bench.refusal(&bench.forge.token().typ("logout+jwt").sign()).await, Some("token.type_not_allowed"));
    let bench = Bench::with(|issuer| {
        issuer.validation = Validation::Introspection(client());
        issuer.require_at_jwt = true;
    });
    says(&bench, &active());
    for token in [OPAQUE.to_owned(), bench.forge.token().typ("JWT").sign(), bench.forge.token().alg("HS256").sign()] {
        assert_eq!(bench.refusal(&token).await, Some("token.type_not_allowed"));
    }
    assert_eq!(calls(&bench), 0);
    assert_eq!(bench.refusal(&bench.forge.token().typ("at+jwt").sign()).await, None);
}

/// C1: an opaque token without an issuer to ask is refused, and nobody is asked.
#[tokio::test(start_paused = true)]
async fn an_opaque_token_needs_an_issuer_to_ask() {
    for bench in [Bench::new(), both()] {
        assert_eq!(bench.refusal(OPAQUE).await, Some("token.malformed"));
        assert_eq!(bench.refusal("a.b.c.d.e").await, Some("token.encrypted"));
        assert!(bench.fake.urls().is_empty());
    }
}

/// C1: two issuers that an opaque token could go to are refused; others may stand beside one.
#[tokio::test(start_paused = true)]
async fn one_issuer_takes_opaque_tokens() {
    let bench = bench();
    let make = |other: Arc<TrustedIssuer>| {
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        Verifier::new(settings, vec![Arc::clone(&bench.issuer), other], Arc::new(bench.clock.clone()))
    };
    let error = make(other_issuer(&bench, Validation::Introspection(client())).1).unwrap_err();
    assert_eq!(error.code(), "settings.ambiguous_introspection");
    let text = error.to_string();
    assert!(text.contains(ISSUER) && text.contains(OTHER) && text.contains(TestIssuer::RESOURCE), "{text}");
    assert!(make(other_issuer(&bench, Validation::JwtAndIntrospection(client())).1).is_ok());
}

/// C1: with both, a signature that does not verify is refused without a call, and a good token is asked about.
#[tokio::test(start_paused = true)]
async fn both_ways_have_to_accept() {
    let bench = both();
    for (token, code) in [
        (bench.forge.token().expires_in(-60).sign(), "token.expired"),
        (bench.forge.token().audience("api").sign(), "token.audience_mismatch"),
        (bench.forge.token().claim("typ", "ID").sign(), "token.not_an_access_token"),
        (portcullis_testkit::flip_signature(&bench.forge.token().sign()), "token.signature"),
    ] {
        assert_eq!(bench.refusal(&token).await, Some(code));
    }
    assert_eq!(calls(&bench), 0);

    let token = bench.forge.token().scope("mcp:tools").sign();
    assert_eq!(bench.refusal(&token).await, None);
    assert_eq!(calls(&bench), 1);

    for (answer, code) in [
        (json!({"active": false}), "token.inactive"),
        (active_without("aud"), "token.audience_missing"),
        (active_with("iss", OTHER), "token.issuer_mismatch"),
        (active_with("token_type", "ID"), "token.not_an_access_token"),
        (json!("nonsense"), "issuer.unavailable"),
    ] {
        says(&bench, &answer);
        assert_eq!(bench.refusal(&bench.forge.token().sign()).await, Some(code), "{answer}");
    }
}

/// C1: a revoked token that was accepted is refused at the next question, long before it expires.
#[tokio::test(start_paused = true)]
async fn a_revocation_works_before_expiry() {
    let bench = both();
    let token = bench.forge.token().sign();
    assert_eq!(bench.refusal(&token).await, None);
    says(&bench, &json!({"active": false}));
    bench.clock.advance(Duration::from_secs(30));
    assert_eq!(bench.refusal(&token).await, Some("token.inactive"));
}

/// C1, C11: with both, new keys end what was remembered under the old ones.
#[tokio::test(start_paused = true)]
async fn new_keys_end_what_was_remembered() {
    let bench = both();
    let token = bench.forge.token().sign();
    assert_eq!(bench.refusal(&token).await, None);
    assert!(bench.verifier.cached(&token).is_some());
    bench.forge.rotate();
    bench.fake.publish(&bench.forge);
    bench.issuer.refresh_now().await.unwrap();
    assert!(bench.verifier.cached(&token).is_none());
}

/// C1, D6: with both, the principal is the token's, with no more scopes and no more time than the issuer still grants. An
/// empty `scope` takes all scopes away, and an absent one none.
#[tokio::test(start_paused = true)]
async fn what_the_issuer_says_narrows() {
    let bench = both();
    let start = portcullis_testkit::ManualClock::START.as_secs();
    let token = || bench.forge.token().subject("bob").scope("a b").expires_in(300).sign();
    for (scope, exp, scopes, expires) in [
        (json!("b c"), json!(start + 100), "b", start + 100),
        (json!("a b c"), json!(start + 900), "a b", start + 300),
        (json!(""), Value::Null, "", start + 300),
        (json!("c"), Value::Null, "", start + 300),
    ] {
        let mut answer = active();
        answer["scope"] = scope;
        answer["exp"] = exp;
        says(&bench, &answer);
        let verified = bench.verify(&token()).await.unwrap();
        let principal = verified.principal();
        assert_eq!(principal.subject(), Some("bob"));
        assert_eq!(
            (principal.scopes().to_string().as_str(), principal.expires().as_secs()),
            (scopes, expires),
            "{answer}"
        );
    }
    let mut answer = active_without("scope");
    answer["exp"] = json!(start + 900);
    says(&bench, &answer);
    assert_eq!(bench.verify(&token()).await.unwrap().principal().scopes().to_string(), "a b");
}

/// D6: where the issuer alone is asked, an absent `scope` and an empty one grant nothing; `null` is no answer.
#[tokio::test(start_paused = true)]
async fn no_scope_grants_nothing() {
    for (answer, outcome) in [
        (active_without("scope"), Ok("")),
        (active_with("scope", ""), Ok("")),
        (active_with("scope", Value::Null), Err("issuer.unavailable")),
        (active_with("scope", json!({})), Err("issuer.unavailable")),
    ] {
        for bench in [bench(), both()] {
            says(&bench, &answer);
            let both = bench.issuer.settings().validation.verifies_signature();
            let token = if both { bench.forge.token().scope("").sign() } else { OPAQUE.to_owned() };
            let scopes = bench.verify(&token).await.map(|verified| verified.principal().scopes().to_string());
            assert_eq!(scopes.as_deref().map_err(|code| *code), outcome, "{answer}");
        }
    }
}

/// C8, D6: `scope_claims` apply to responses as well: their values are granted, and limit those of a signed token.
#[tokio::test(start_paused = true)]
async fn scope_claims_of_responses() {
    let roles = |roles: Value| {
        let mut response = active_without("scope");
        response["realm_access"] = json!({ "roles": roles });
        response
    };
    let with_roles = |validation: Validation| {
        Bench::with(|issuer| {
            issuer.validation = validation;
            issuer.scope_claims = vec!["/realm_access/roles".to_owned()];
        })
    };
    let bench = with_roles(Validation::Introspection(client()));
    says(&bench, &roles(json!(["tools", "not tools", 7])));
    assert_eq!(bench.verify(OPAQUE).await.unwrap().principal().scopes().to_string(), "tools");

    for (answer, left) in [
        (roles(json!(["tools"])), "tools"),
        (roles(json!([])), ""),
        (active_with("scope", "tools"), "tools"),
        (active_with("scope", "a"), "a"),
        (active_without("scope"), "a admin tools"),
    ] {
        let bench = with_roles(Validation::JwtAndIntrospection(client()));
        says(&bench, &answer);
        let signed =
            bench.forge.token().scope("a").claim("realm_access", json!({ "roles": ["admin", "tools"] })).sign();
        assert_eq!(bench.verify(&signed).await.unwrap().principal().scopes().to_string(), left, "{answer}");
    }
}
