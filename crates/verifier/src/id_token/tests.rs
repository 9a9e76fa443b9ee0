use std::time::Duration;

use portcullis_jose::Algorithm;
use portcullis_metadata::{Clock as _, Secret};
use portcullis_testkit::{TestIssuer, TokenBuilder};
use serde_json::json;

use super::*;
use crate::testing::{Fixture, ISSUER};

const CLIENT: &str = "the-client";
const NONCE: &str = "n-0S6_WzA2Mj";

const EXPECTED: ExpectedIdToken<'_> = ExpectedIdToken {
    client_id: CLIENT,
    nonce: Some(NONCE),
};

/// Returns a valid ID token.
fn id_token(fixture: &Fixture) -> TokenBuilder {
    fixture
        .test_issuer
        .token()
        .typ("JWT")
        .audience(CLIENT)
        .without("client_id")
        .claim("nonce", NONCE)
}

fn logout_token(fixture: &Fixture) -> TokenBuilder {
    id_token(fixture)
        .typ("logout+jwt")
        .without("nonce")
        .claim("events", json!({ LOGOUT_EVENT: {} }))
        .claim("sid", "session-1")
}

const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

async fn verify(fixture: &Fixture, token: &str) -> Result<IdToken, &'static str> {
    fixture
        .issuer
        .verify_id_token(&Secret::new(token), &EXPECTED)
        .await
        .map_err(|error| error.code())
}

async fn rejection(fixture: &Fixture, token: &TokenBuilder) -> Option<&'static str> {
    verify(fixture, &token.sign()).await.err()
}

async fn logout(fixture: &Fixture, token: &TokenBuilder) -> Result<LogoutToken, &'static str> {
    fixture
        .issuer
        .verify_logout_token(&Secret::new(token.sign()), CLIENT)
        .await
        .map_err(|error| error.code())
}

/// PR3: a valid token is accepted, also with several audiences and `azp`.
#[tokio::test]
async fn a_valid_id_token_is_accepted() {
    let fixture = Fixture::new();
    let token = id_token(&fixture).claim("email", "a@example.com");
    let verified = verify(&fixture, &token.sign()).await.unwrap();
    assert_eq!(verified.subject(), "alice");
    assert_eq!(verified.claims()["email"], "a@example.com");
    assert_eq!(format!("{verified:?}"), "IdToken { .. }");
    let token = id_token(&fixture);
    for token in [
        token.clone().without_header("typ"),
        token.clone().audience(json!([CLIENT])),
        token.clone().claim("azp", CLIENT),
        token.audience(json!([CLIENT, "api"])).claim("azp", CLIENT),
    ] {
        assert_eq!(rejection(&fixture, &token).await, None, "{token:?}");
    }
}

/// PR3: a token for another client, from another issuer or from another sign-in is rejected.
#[tokio::test]
async fn foreign_id_tokens_are_rejected() {
    let fixture = Fixture::new();
    let token = id_token(&fixture);
    let audience = "id_token.audience_mismatch";
    let party = "id_token.authorized_party_mismatch";
    let nonce = "id_token.nonce_mismatch";
    for (token, code) in [
        (token.clone().audience("other"), audience),
        (token.clone().without("aud"), audience),
        (token.clone().audience(json!([])), audience),
        (token.clone().audience("the-client "), audience),
        (token.clone().audience(json!([CLIENT, "other"])), audience),
        (token.clone().claim("azp", "other"), party),
        (
            token
                .clone()
                .audience(json!([CLIENT, "other"]))
                .claim("azp", "other"),
            party,
        ),
        (
            token.clone().issuer("https://issuer.example/"),
            "id_token.issuer_mismatch",
        ),
        (token.clone().without("iss"), "id_token.issuer_mismatch"),
        (token.clone().claim("nonce", "other"), nonce),
        (token.clone().claim("nonce", ""), nonce),
        (token.clone().claim("nonce", 5), nonce),
        (token.clone().without("nonce"), nonce),
        (token.clone().subject(""), "id_token.subject_invalid"),
        (token.clone().without("sub"), "id_token.subject_invalid"),
        (
            token.clone().subject(&"s".repeat(256)),
            "id_token.subject_invalid",
        ),
        (token.clone().typ("at+jwt"), "id_token.type_not_allowed"),
        (token.clone().typ("logout+jwt"), "id_token.type_not_allowed"),
        (token.typ("application/at+jwt"), "id_token.type_not_allowed"),
    ] {
        assert_eq!(rejection(&fixture, &token).await, Some(code), "{token:?}");
    }
}

/// PR3: the times are checked with a leeway of 10 s.
#[tokio::test]
async fn the_times_are_checked() {
    let fixture = Fixture::new();
    let token = id_token(&fixture);
    for (token, code) in [
        (token.clone().expires_in(-9), None),
        (token.clone().expires_in(-10), Some("token.expired")),
        (token.clone().without("exp"), Some("token.expiry_missing")),
        (token.clone().issued_in(10), None),
        (token.clone().issued_in(11), Some("token.issued_in_future")),
        (
            token.clone().without("iat"),
            Some("token.issued_at_missing"),
        ),
        (token.not_before_in(11), Some("token.not_yet_valid")),
    ] {
        assert_eq!(rejection(&fixture, &token).await, code, "{token:?}");
    }
}

/// PR3: only the algorithms of the issuer are accepted, never none and never HMAC.
#[tokio::test]
async fn other_algorithms_are_rejected() {
    let fixture = Fixture::new();
    let token = id_token(&fixture);
    let es256 = token
        .clone()
        .signed_by(fixture.test_issuer.key_for(Algorithm::Es256));
    let mut forged = vec![
        es256.sign(),
        token.unsigned("none"),
        token.unsigned("NONE"),
        token.self_signed(&TestIssuer::new("https://evil.example").key()),
    ];
    forged.extend(token.hmac_with_public_key());
    for token in forged {
        assert!(verify(&fixture, &token).await.is_err(), "{token}");
    }
    let other = TestIssuer::new("https://evil.example");
    let signed_by_other = token.signed_by(other.key()).sign();
    assert!(verify(&fixture, &signed_by_other).await.is_err());
}

/// A rotated key is fetched once; an unknown one is not fetched again within the cooldown.
#[tokio::test]
async fn rotated_keys_are_fetched_with_a_cooldown() {
    let fixture = Fixture::new();
    assert_eq!(rejection(&fixture, &id_token(&fixture)).await, None);
    assert_eq!(fixture.hits(), 1);
    fixture.clock.advance(Duration::from_secs(31));
    fixture.test_issuer.rotate();
    fixture.fake.publish(&fixture.test_issuer);
    let rotated = id_token(&fixture).claim("iat", fixture.clock.now().as_secs());
    assert_eq!(rejection(&fixture, &rotated).await, None);
    assert_eq!(fixture.hits(), 2);
    for _ in 0..3 {
        let unknown = id_token(&fixture).kid("unknown");
        assert_eq!(
            rejection(&fixture, &unknown).await,
            Some("token.key_unknown")
        );
    }
    assert_eq!(fixture.hits(), 2);
}

/// A token that cannot be verified because the provider is away is not rejected.
#[tokio::test]
async fn an_unreachable_issuer_is_unavailable() {
    let fixture = Fixture::new();
    fixture.fake.fail(fixture.test_issuer.endpoint("jwks"));
    let error = fixture
        .issuer
        .verify_id_token(&Secret::new(id_token(&fixture).sign()), &EXPECTED)
        .await
        .unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

/// A refreshed ID token need not have a nonce.
#[tokio::test]
async fn without_an_expected_nonce_none_is_required() {
    let fixture = Fixture::new();
    let expected = ExpectedIdToken {
        nonce: None,
        ..EXPECTED
    };
    let token = Secret::new(id_token(&fixture).without("nonce").sign());
    assert!(
        fixture
            .issuer
            .verify_id_token(&token, &expected)
            .await
            .is_ok()
    );
}

/// Payloads that two parsers read differently, and tokens that are too long, are rejected.
#[tokio::test]
async fn hostile_payloads_are_rejected() {
    let fixture = Fixture::new();
    let token = id_token(&fixture);
    let duplicate = format!(
        r#"{{"iss":"{ISSUER}","aud":"{CLIENT}","sub":"a","sub":"b","exp":9999999999,"iat":1,"nonce":"{NONCE}"}}"#
    );
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for payload in [duplicate.as_str(), deep.as_str(), "[]", "", "{\"iss\":5}"] {
        let token = token.clone().raw_payload(payload);
        assert!(rejection(&fixture, &token).await.is_some(), "{payload}");
    }
    let long = token.claim("a", "a".repeat(MAX_TOKEN_BYTES));
    assert_eq!(rejection(&fixture, &long).await, Some("token.too_large"));
}

/// US5: a logout token is accepted with `sid`, with `sub`, or with both.
#[tokio::test]
async fn a_valid_logout_token_is_accepted() {
    let fixture = Fixture::new();
    let token = logout_token(&fixture).claim("jti", "j");
    let verified = logout(&fixture, &token).await.unwrap();
    assert_eq!(&*verified.jti, "j");
    assert_eq!(verified.sid.as_deref(), Some("session-1"));
    assert_eq!(verified.sub.as_deref(), Some("alice"));
    for token in [
        token.clone().without("sid"),
        token.clone().without("sub"),
        token.clone().without("exp"),
        token.clone().typ("JWT"),
        token.without_header("typ"),
    ] {
        assert!(logout(&fixture, &token).await.is_ok(), "{token:?}");
    }
}

/// US5: forged, foreign, old and incomplete logout tokens are rejected.
#[tokio::test]
async fn other_logout_tokens_are_rejected() {
    let fixture = Fixture::new();
    let token = logout_token(&fixture);
    let no_logout = "id_token.not_a_logout_token";
    for (token, code) in [
        (id_token(&fixture), no_logout),
        (token.clone().claim("nonce", NONCE), no_logout),
        (token.clone().without("events"), no_logout),
        (token.clone().claim("events", LOGOUT_EVENT), no_logout),
        (
            token.clone().claim("events", json!({ LOGOUT_EVENT: null })),
            no_logout,
        ),
        (token.clone().without("jti"), no_logout),
        (token.clone().without("sid").without("sub"), no_logout),
        (token.clone().claim("sid", ""), no_logout),
        (token.clone().claim("sid", 5), no_logout),
        (
            token.clone().audience("other"),
            "id_token.audience_mismatch",
        ),
        (
            token.clone().issuer("https://evil.example"),
            "id_token.issuer_mismatch",
        ),
        (token.clone().issued_in(-311), "token.expired"),
        (token.clone().expires_in(-11), "token.expired"),
        (token.clone().issued_in(11), "token.issued_in_future"),
        (token.clone().without("iat"), "token.issued_at_missing"),
        (token.typ("at+jwt"), "id_token.type_not_allowed"),
    ] {
        assert_eq!(
            logout(&fixture, &token).await.err(),
            Some(code),
            "{token:?}"
        );
    }
}
