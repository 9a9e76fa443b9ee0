//! The issuer that verifies a token, by signature, introspection or both.

use portcullis_metadata::ResourceUri;

use super::*;
use crate::{
    TrustedIssuer, Verifier, VerifierSettings,
    testing::{trusted, verifier_of},
};

const OTHER: &str = "https://other.example";

/// Returns a fixture with an introspecting issuer and one that verifies signatures.
fn with_jwt_issuer() -> (Fixture, TestIssuer) {
    let mut fixture = fixture();
    let (test_issuer, other) = other_issuer(&fixture, Validation::Jwt);
    fixture.verifier = verifier_of(
        TestIssuer::RESOURCE,
        vec![other, Arc::clone(&fixture.issuer)],
        &fixture.clock,
    );
    (fixture, test_issuer)
}

fn other_issuer(fixture: &Fixture, validation: Validation) -> (TestIssuer, Arc<TrustedIssuer>) {
    let test_issuer = TestIssuer::new(OTHER).with_clock(fixture.clock.clone());
    fixture.fake.publish(&test_issuer);
    let mut settings = IssuerSettings::new(test_issuer.issuer().clone());
    settings.validation = validation;
    let issuer = trusted(settings, &fixture.fake, &fixture.clock, Handle::current());
    (test_issuer, issuer)
}

/// C1: an opaque token goes to the introspecting issuer, and a JWS to the issuer that it names.
#[tokio::test(start_paused = true)]
async fn tokens_go_to_their_issuer() {
    let (fixture, other) = with_jwt_issuer();
    for token in [OPAQUE, "v4.local.AAAA", "a.b", "a.b.c.d.e", "-._~+/"] {
        let verified = fixture.verify(token).await.unwrap();
        assert_eq!(
            verified.principal().issuer(),
            fixture.test_issuer.issuer(),
            "{token}"
        );
    }
    let verified = fixture
        .verify(&fixture.test_issuer.token().sign())
        .await
        .unwrap();
    assert_eq!(verified.principal().issuer(), fixture.test_issuer.issuer());
    assert_eq!(calls(&fixture), 6);

    let verified = fixture.verify(&other.token().sign()).await.unwrap();
    assert_eq!(verified.principal().issuer(), other.issuer());
    assert_eq!(
        fixture
            .rejection(&other.token().issuer("https://evil.example").sign())
            .await,
        Some("token.issuer_unknown")
    );
    assert_eq!(
        fixture
            .rejection(&other.token().without("iss").sign())
            .await,
        Some("token.issuer_missing")
    );
    assert_eq!(calls(&fixture), 6);
    assert_eq!(fixture.fake.hits(fixture.test_issuer.endpoint("jwks")), 0);
}

/// C9: a token that is too long is rejected without introspection.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_too_long_is_not_introspected() {
    let fixture = fixture();
    assert_eq!(
        fixture.rejection(&"x".repeat(16 * 1024 + 1)).await,
        Some("token.too_large")
    );
    assert_eq!(calls(&fixture), 0);
    assert_eq!(fixture.rejection(&"x".repeat(16 * 1024)).await, None);
    assert_eq!(calls(&fixture), 1);
}

/// C1, C2: a JWS of another issuer is never sent to the introspecting issuer, even if it is
/// malformed.
#[tokio::test(start_paused = true)]
async fn a_foreign_token_is_not_introspected() {
    let (fixture, other) = with_jwt_issuer();
    for (token, code) in [
        (other.token().unsigned("none"), "token.malformed"),
        (
            other.token().alg("HS256").sign(),
            "token.algorithm_unsupported",
        ),
        (
            other.token().header("crit", json!(["b64"])).sign(),
            "token.header_extension",
        ),
        (
            other
                .token()
                .issuer("https://evil.example")
                .alg("HS256")
                .sign(),
            "token.algorithm_unsupported",
        ),
        (
            other.token().signed_by(fixture.test_issuer.key()).sign(),
            "token.signature",
        ),
    ] {
        assert_eq!(fixture.rejection(&token).await, Some(code));
    }
    assert_eq!(calls(&fixture), 0);
}

/// C1: a JWS of the introspecting issuer is introspected with any header, and no keys are used.
#[tokio::test(start_paused = true)]
async fn a_jws_of_the_introspecting_issuer_is_introspected() {
    let fixture = fixture();
    for token in [
        fixture.test_issuer.token().alg("HS256").sign(),
        fixture
            .test_issuer
            .token()
            .header("crit", json!(["x"]))
            .sign(),
    ] {
        assert_eq!(fixture.rejection(&token).await, None);
    }
    set_response(&fixture, &json!({"active": false}));
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        Some("token.inactive")
    );
    assert_eq!(calls(&fixture), 3);
}

/// C1: the claims in an introspected JWS are not validated.
#[tokio::test(start_paused = true)]
async fn claims_of_introspected_tokens_are_not_validated() {
    let fixture = fixture();
    for (claim, value) in [
        ("sub", json!(7)),
        ("aud", json!(7)),
        ("exp", json!("soon")),
        ("scope", json!([7])),
    ] {
        assert_eq!(
            fixture
                .rejection(&fixture.test_issuer.token().claim(claim, value).sign())
                .await,
            None,
            "{claim}"
        );
    }
    assert_eq!(calls(&fixture), 4);
}

/// C4: the `typ` of a JWS is checked, and `at+jwt` can be required of introspected tokens.
#[tokio::test(start_paused = true)]
async fn header_types_are_checked() {
    let fixture = fixture();
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("logout+jwt").sign())
            .await,
        Some("token.type_not_allowed")
    );

    let fixture = Fixture::with(|issuer| {
        issuer.validation = Validation::Introspection(client());
        issuer.require_at_jwt = true;
    });
    set_response(&fixture, &active());
    for token in [
        OPAQUE.to_owned(),
        fixture.test_issuer.token().typ("JWT").sign(),
        fixture.test_issuer.token().alg("HS256").sign(),
    ] {
        assert_eq!(
            fixture.rejection(&token).await,
            Some("token.type_not_allowed")
        );
    }
    assert_eq!(calls(&fixture), 0);
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("at+jwt").sign())
            .await,
        None
    );
}

/// C1: without an introspecting issuer, an opaque token is rejected without a call.
#[tokio::test(start_paused = true)]
async fn an_opaque_token_needs_an_introspecting_issuer() {
    for fixture in [Fixture::new(), both()] {
        assert_eq!(fixture.rejection(OPAQUE).await, Some("token.malformed"));
        assert_eq!(
            fixture.rejection("a.b.c.d.e").await,
            Some("token.encrypted")
        );
        assert!(fixture.fake.urls().is_empty());
    }
}

/// C1: two issuers for opaque tokens are rejected. Other issuers can be added.
#[tokio::test(start_paused = true)]
async fn one_issuer_introspects_opaque_tokens() {
    let fixture = fixture();
    let make = |other: Arc<TrustedIssuer>| {
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        Verifier::new(
            settings,
            vec![Arc::clone(&fixture.issuer), other],
            Arc::new(fixture.clock.clone()),
        )
    };
    let error = make(other_issuer(&fixture, Validation::Introspection(client())).1).unwrap_err();
    assert_eq!(error.code(), "settings.ambiguous_introspection");
    let text = error.to_string();
    assert!(text.contains(ISSUER), "{text}");
    assert!(text.contains(OTHER), "{text}");
    assert!(text.contains(TestIssuer::RESOURCE), "{text}");
    assert!(make(other_issuer(&fixture, Validation::JwtAndIntrospection(client())).1).is_ok());
}

/// C1: with both methods, an invalid signature is rejected without a call, and a valid token is
/// introspected.
#[tokio::test(start_paused = true)]
async fn signature_and_introspection_must_both_succeed() {
    let fixture = both();
    for (token, code) in [
        (
            fixture.test_issuer.token().expires_in(-60).sign(),
            "token.expired",
        ),
        (
            fixture.test_issuer.token().audience("api").sign(),
            "token.audience_mismatch",
        ),
        (
            fixture.test_issuer.token().claim("typ", "ID").sign(),
            "token.not_an_access_token",
        ),
        (
            portcullis_testkit::flip_signature(&fixture.test_issuer.token().sign()),
            "token.signature",
        ),
    ] {
        assert_eq!(fixture.rejection(&token).await, Some(code));
    }
    assert_eq!(calls(&fixture), 0);

    let token = fixture.test_issuer.token().scope("mcp:tools").sign();
    assert_eq!(fixture.rejection(&token).await, None);
    assert_eq!(calls(&fixture), 1);

    for (response, code) in [
        (json!({"active": false}), "token.inactive"),
        (active_without("aud"), "token.audience_missing"),
        (active_with("iss", OTHER), "token.issuer_mismatch"),
        (active_with("token_type", "ID"), "token.not_an_access_token"),
        (json!("nonsense"), "issuer.unavailable"),
    ] {
        set_response(&fixture, &response);
        assert_eq!(
            fixture.rejection(&fixture.test_issuer.token().sign()).await,
            Some(code),
            "{response}"
        );
    }
}

/// C1: a revoked token is rejected by the next introspection.
#[tokio::test(start_paused = true)]
async fn a_revocation_takes_effect_before_expiry() {
    let fixture = both();
    let token = fixture.test_issuer.token().sign();
    assert_eq!(fixture.rejection(&token).await, None);
    set_response(&fixture, &json!({"active": false}));
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.rejection(&token).await, Some("token.inactive"));
}

/// C1, C11: with both methods, new keys invalidate cached tokens.
#[tokio::test(start_paused = true)]
async fn new_keys_invalidate_cached_tokens() {
    let fixture = both();
    let token = fixture.test_issuer.token().sign();
    assert_eq!(fixture.rejection(&token).await, None);
    assert!(fixture.verifier.cached(&token).is_some());
    fixture.test_issuer.rotate();
    fixture.fake.publish(&fixture.test_issuer);
    fixture.issuer.refresh_now().await.unwrap();
    assert!(fixture.verifier.cached(&token).is_none());
}

/// C1, D6: with both methods, the response restricts the token's scopes and expiration time. An
/// empty `scope` removes all scopes, and a missing one none.
#[tokio::test(start_paused = true)]
async fn the_response_restricts_the_principal() {
    let fixture = both();
    let start = portcullis_testkit::ManualClock::START.as_secs();
    let token = || {
        fixture
            .test_issuer
            .token()
            .subject("bob")
            .scope("a b")
            .expires_in(300)
            .sign()
    };
    for (scope, scopes) in [("b c", "b"), ("a b c", "a b"), ("", ""), ("c", "")] {
        let response = active_with("scope", scope);
        set_response(&fixture, &response);
        let verified = fixture.verify(&token()).await.unwrap();
        assert_eq!(
            verified.principal().scopes().to_string(),
            scopes,
            "{response}"
        );
    }
    for (exp, expires) in [
        (json!(start + 100), start + 100),
        (json!(start + 900), start + 300),
        (Value::Null, start + 300),
    ] {
        let response = active_with("exp", exp);
        set_response(&fixture, &response);
        let verified = fixture.verify(&token()).await.unwrap();
        let principal = verified.principal();
        assert_eq!(principal.subject(), Some("bob"));
        assert_eq!(principal.expires().as_secs(), expires, "{response}");
    }
    set_response(&fixture, &active_without("scope"));
    assert_eq!(
        fixture
            .verify(&token())
            .await
            .unwrap()
            .principal()
            .scopes()
            .to_string(),
        "a b"
    );
}

/// D6: a missing and an empty `scope` grant nothing, without a signature and in addition to one.
/// `null` is not a valid response.
#[tokio::test(start_paused = true)]
async fn no_scope_grants_nothing() {
    for (response, expected) in [
        (active_without("scope"), Ok("")),
        (active_with("scope", ""), Ok("")),
        (active_with("scope", Value::Null), Err("issuer.unavailable")),
        (active_with("scope", json!({})), Err("issuer.unavailable")),
    ] {
        for fixture in [fixture(), both()] {
            set_response(&fixture, &response);
            let is_signed = fixture.issuer.settings().validation.verifies_signature();
            let token = if is_signed {
                fixture.test_issuer.token().scope("").sign()
            } else {
                OPAQUE.to_owned()
            };
            let scopes = fixture
                .verify(&token)
                .await
                .map(|verified| verified.principal().scopes().to_string());
            assert_eq!(
                scopes.as_deref().map_err(|code| *code),
                expected,
                "{response}"
            );
        }
    }
}

/// C8, D6: `scope_claims` apply to responses as well: their values are granted, and limit those of
/// a signed token.
#[tokio::test(start_paused = true)]
async fn scope_claims_of_responses() {
    let roles = |roles: Value| {
        let mut response = active_without("scope");
        response["realm_access"] = json!({ "roles": roles });
        response
    };
    let with_roles = |validation: Validation| {
        Fixture::with(|issuer| {
            issuer.validation = validation;
            issuer.scope_claims = vec!["/realm_access/roles".to_owned()];
        })
    };
    let fixture = with_roles(Validation::Introspection(client()));
    set_response(&fixture, &roles(json!(["tools", "not tools", 7])));
    assert_eq!(
        fixture
            .verify(OPAQUE)
            .await
            .unwrap()
            .principal()
            .scopes()
            .to_string(),
        "tools"
    );

    for (response, left) in [
        (roles(json!(["tools"])), "tools"),
        (roles(json!([])), ""),
        (active_with("scope", "tools"), "tools"),
        (active_with("scope", "a"), "a"),
        (active_without("scope"), "a admin tools"),
    ] {
        let fixture = with_roles(Validation::JwtAndIntrospection(client()));
        set_response(&fixture, &response);
        let signed = fixture
            .test_issuer
            .token()
            .scope("a")
            .claim("realm_access", json!({ "roles": ["admin", "tools"] }))
            .sign();
        assert_eq!(
            fixture
                .verify(&signed)
                .await
                .unwrap()
                .principal()
                .scopes()
                .to_string(),
            left,
            "{response}"
        );
    }
}
