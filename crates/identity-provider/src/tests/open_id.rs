//! The sign-in at any OpenID provider.

use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::{FetchRequest, FetchResponse};
use portcullis_metadata::{Clock as _, Secret};
use serde_json::json;

use crate::{ClientAuthentication, ProviderError, ProviderKind, testing::*};

const ISSUER: &str = "https://idp.example";

fn fixture() -> Fixture {
    Fixture::new(ProviderKind::Oidc, ISSUER)
}

/// Lets the user API answer about the user of the ID token.
fn serve_user(fixture: &Fixture, claims: serde_json::Value) {
    fixture
        .network
        .serve(fixture.endpoint("userinfo"), 200, claims.to_string());
}

/// The browser gets all parameters, and nothing that another client asked for.
#[tokio::test]
async fn the_authorization_request_is_complete() {
    let url = fixture().authorization_url().await;
    assert!(url.as_str().starts_with("https://idp.example/authorize?"));
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", REDIRECT_URI),
        ("state", "the-state"),
        ("nonce", NONCE),
        ("scope", "openid profile email offline_access"),
        ("code_challenge_method", "S256"),
        ("prompt", "consent"),
    ] {
        assert_eq!(parameter(&url, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(parameter(&url, "code_challenge").unwrap().len(), 43);
    assert_eq!(url.query_pairs().count(), 9);
}

/// PKCE and `offline_access` are left out where the metadata does not list them.
#[tokio::test]
async fn unsupported_features_are_left_out() {
    let fixture = fixture();
    fixture.publish(json!({
        "code_challenge_methods_supported": ["plain"], "scopes_supported": ["openid"],
    }));
    let url = fixture.authorization_url().await;
    assert_eq!(parameter(&url, "code_challenge"), None);
    assert_eq!(parameter(&url, "code_challenge_method"), None);
    assert_eq!(parameter(&url, "scope").unwrap(), "openid profile email");
    fixture.answer_with(&fixture.id_token());
    fixture.redeem().await.unwrap();
    assert_eq!(
        fixture.sent(&fixture.endpoint("token"), "code_verifier"),
        None
    );
}

/// The query of an authorization endpoint is kept.
#[tokio::test]
async fn a_query_of_the_endpoint_is_kept() {
    let fixture = fixture();
    fixture.publish(json!({ "authorization_endpoint": "https://idp.example/a?policy=p" }));
    let url = fixture.authorization_url().await;
    assert_eq!(parameter(&url, "policy").as_deref(), Some("p"));
    assert_eq!(parameter(&url, "client_id").as_deref(), Some(CLIENT));
}

/// The code is exchanged with the verifier, and the user comes from the ID token and the user API.
#[tokio::test]
async fn a_user_signs_in() {
    let fixture = fixture();
    let auth_time = fixture.clock.now().as_secs() - 60;
    fixture.answer_with(
        &fixture
            .id_token()
            .claim("sid", "session-1")
            .claim("auth_time", auth_time)
            .claim("groups", json!(["admins"])),
    );
    serve_user(
        &fixture,
        json!({ "sub": "alice", "email": "alice@example.com", "groups": ["other"], "iss": "x" }),
    );
    let response = fixture.redeem().await.unwrap();
    let token = fixture.endpoint("token");
    for (field, value) in [
        ("grant_type", "authorization_code"),
        ("code", "the-code"),
        ("redirect_uri", REDIRECT_URI),
        ("code_verifier", VERIFIER),
        ("client_id", CLIENT),
        ("client_secret", SECRET),
    ] {
        assert_eq!(
            fixture.sent(&token, field).as_deref(),
            Some(value),
            "{field}"
        );
    }
    let tokens = response.tokens();
    assert_eq!(tokens.access_token, Some(Secret::new("at-1")));
    assert_eq!(tokens.refresh_token, Some(Secret::new("rt-1")));
    let lifetime = tokens.access_token_expires.unwrap().as_secs() - fixture.clock.now().as_secs();
    assert_eq!(lifetime, 3600);

    let identity = fixture
        .provider
        .identify(&response, Some(NONCE))
        .await
        .unwrap();
    assert!(identity.subject.starts_with("idp_"), "{identity:?}");
    assert_eq!(&*identity.provider_subject, "alice");
    assert_eq!(identity.provider_session.as_deref(), Some("session-1"));
    assert_eq!(identity.auth_time.as_secs(), auth_time);
    assert_eq!(identity.claims["email"], "alice@example.com");
    // The ID token takes precedence.
    assert_eq!(identity.claims["groups"], json!(["admins"]));
    for name in ["iss", "aud", "exp", "nonce", "sid"] {
        assert!(!identity.claims.contains_key(name), "{name}");
    }
    assert!(identity.has_id_token && identity.omitted_claims.is_empty());
    let user_request = fixture.last_request(&fixture.endpoint("userinfo"));
    assert_eq!(user_request.headers[header::AUTHORIZATION], "Bearer at-1");
}

/// A sign-in is not later than the ID token about it, and `auth_time` of another type is ignored.
#[tokio::test]
async fn a_sign_in_is_not_in_the_future() {
    let fixture = fixture();
    serve_user(&fixture, json!({ "sub": "alice" }));
    for auth_time in [json!(u64::MAX), json!("1"), json!(-1), json!(null)] {
        fixture.answer_with(&fixture.id_token().claim("auth_time", auth_time.clone()));
        let identity = fixture.sign_in().await.unwrap();
        assert_eq!(identity.auth_time, fixture.clock.now(), "{auth_time}");
    }
}

/// The secret is sent in the way that the metadata or the settings name.
#[tokio::test]
async fn the_client_authenticates_by_the_listed_method() {
    for (methods, configured, is_basic) in [
        (json!(["client_secret_basic"]), None, true),
        (json!(null), None, true),
        (
            json!(["client_secret_basic", "client_secret_post"]),
            None,
            false,
        ),
        (
            json!(["client_secret_post"]),
            Some(ClientAuthentication::Basic),
            true,
        ),
    ] {
        let fixture = Fixture::with(ProviderKind::Oidc, ISSUER, |settings| {
            settings.client_authentication = configured;
        });
        fixture.publish(json!({ "token_endpoint_auth_methods_supported": methods }));
        fixture.answer_with(&fixture.id_token());
        fixture.redeem().await.unwrap();
        let token = fixture.endpoint("token");
        let has_header = fixture
            .last_request(&token)
            .headers
            .contains_key(header::AUTHORIZATION);
        assert_eq!(has_header, is_basic, "{methods}");
        assert_eq!(fixture.sent(&token, "client_secret").is_none(), is_basic);
    }
}

/// An application may be registered for only one of the methods that the provider lists.
#[tokio::test]
async fn the_other_listed_method_is_tried() {
    let fixture = fixture();
    let methods = json!(["client_secret_basic", "client_secret_post"]);
    fixture.publish(json!({ "token_endpoint_auth_methods_supported": methods }));
    let token = fixture.endpoint("token");
    let tokens = json!({ "access_token": "at-1", "token_type": "Bearer" });
    let accept_basic = move |request: &FetchRequest| {
        let (status, body) = match request.headers.contains_key(header::AUTHORIZATION) {
            true => (StatusCode::OK, tokens.clone()),
            false => (
                StatusCode::UNAUTHORIZED,
                json!({ "error": "invalid_client" }),
            ),
        };
        Ok(FetchResponse {
            status,
            headers: HeaderMap::new(),
            body: body.to_string().into(),
            sent: Default::default(),
        })
    };
    fixture.network.respond(&token, accept_basic);
    fixture.redeem().await.unwrap();
    assert_eq!(fixture.network.hits(&token), 2);
    // The method that was accepted is used from now on.
    fixture.redeem().await.unwrap();
    assert_eq!(fixture.network.hits(&token), 3);

    fixture.answer(401, json!({ "error": "invalid_client" }));
    let rejected = ProviderError::ApplicationRejected("invalid_client");
    assert_eq!(fixture.redeem().await.unwrap_err(), rejected);
    assert_eq!(fixture.network.hits(&token), 5);
}

/// PR2: a response of another provider is refused before its code is sent anywhere.
#[tokio::test]
async fn a_mixed_up_response_is_refused() {
    let fixture = fixture();
    fixture.answer_with(&fixture.id_token());
    for iss in ["https://evil.example", "https://idp.example/", ""] {
        assert_eq!(
            fixture.redeem_from(Some(iss)).await.unwrap_err(),
            ProviderError::IssuerMismatch
        );
    }
    assert_eq!(fixture.network.hits(fixture.endpoint("token")), 0);
    assert!(fixture.redeem_from(Some(ISSUER)).await.is_ok());
    assert!(fixture.redeem_from(None).await.is_ok());
}

/// PR2: a provider that announces `iss` must send it, also with errors.
#[tokio::test]
async fn an_announced_issuer_is_required() {
    let fixture = fixture();
    fixture.publish(json!({ "authorization_response_iss_parameter_supported": true }));
    fixture.answer_with(&fixture.id_token());
    assert_eq!(
        fixture.redeem().await.unwrap_err(),
        ProviderError::IssuerMismatch
    );
    let provider = &fixture.provider;
    assert!(provider.check_response_issuer(None).await.is_err());
    assert!(provider.check_response_issuer(Some(ISSUER)).await.is_ok());
}

/// PR3: an ID token of another client, issuer or sign-in does not identify.
#[tokio::test]
async fn foreign_id_tokens_do_not_identify() {
    let fixture = fixture();
    let token = fixture.id_token();
    let code = Some("provider.id_token_invalid");
    for token in [
        token.clone().audience("other"),
        token.clone().claim("azp", "other"),
        token.clone().issuer("https://evil.example"),
        token.clone().claim("nonce", "other"),
        token.clone().without("nonce"),
        token.clone().expires_in(-60),
        token.clone().issued_in(60),
        token.clone().subject(""),
        token.typ("at+jwt"),
    ] {
        assert_eq!(fixture.rejection(&token).await, code, "{token:?}");
    }
    assert_eq!(fixture.network.hits(fixture.endpoint("userinfo")), 0);
}

/// PR1: a sign-in without an ID token does not fall back to the user API.
#[tokio::test]
async fn a_sign_in_needs_an_id_token() {
    let fixture = fixture();
    serve_user(&fixture, json!({ "sub": "alice" }));
    fixture.answer(200, json!({ "access_token": "at", "token_type": "Bearer" }));
    assert_eq!(
        fixture.sign_in().await.unwrap_err(),
        ProviderError::ResponseInvalid("id_token.missing")
    );
    assert_eq!(fixture.network.hits(fixture.endpoint("userinfo")), 0);
}

/// PR3: the answer of the user API must be about the same user.
#[tokio::test]
async fn user_info_of_another_user_is_refused() {
    let fixture = fixture();
    fixture.answer_with(&fixture.id_token());
    for body in [
        json!({ "sub": "mallory" }),
        json!({ "email": "a@example.com" }),
        json!({ "sub": 5 }),
        json!([]),
    ] {
        serve_user(&fixture, body.clone());
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{body}");
    }
    fixture.network.serve(fixture.endpoint("userinfo"), 403, "");
    assert_eq!(
        fixture.sign_in().await.unwrap_err(),
        ProviderError::ResponseInvalid("user_api.rejected")
    );
}

/// The keys are fetched again after a rotation.
#[tokio::test]
async fn rotated_keys_are_fetched() {
    let fixture = fixture();
    serve_user(&fixture, json!({ "sub": "alice" }));
    assert_eq!(fixture.rejection(&fixture.id_token()).await, None);
    fixture.clock.advance(std::time::Duration::from_secs(60));
    fixture.test_issuer.rotate();
    fixture.publish(json!({}));
    assert_eq!(fixture.rejection(&fixture.id_token()).await, None);
}

/// All methods can be called from a task of any runtime.
#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: T) {}
    fn check(fixture: &Fixture) {
        let provider = &fixture.provider;
        let stored = tokens(None, None);
        is_send(provider.refresh(&stored));
        is_send(provider.revoke(&stored));
        is_send(provider.check_with_access_token(&stored));
        is_send(provider.verify_logout_token(""));
        is_send(fixture.authorization_url());
        is_send(fixture.sign_in());
    }
    let _ = check;
}
