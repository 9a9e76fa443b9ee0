//! Refreshes, and checks with the stored access token.

use std::time::Duration;

use portcullis_metadata::{Clock as _, Secret};
use serde_json::json;

use crate::{
    ProviderError, ProviderKind,
    testing::{Fixture, tokens},
};

fn fixture() -> Fixture {
    Fixture::new(ProviderKind::Keycloak, "https://idp.example")
}

/// US3: a response without a refresh token keeps the old one.
#[tokio::test]
async fn the_old_refresh_token_is_kept() {
    let fixture = fixture();
    let stored = tokens(None, Some("rt-0"));
    for (refresh_token, expected) in [
        (json!("rt-1"), "rt-1"),
        (json!(null), "rt-0"),
        (json!(""), "rt-0"),
    ] {
        fixture.answer(
            200,
            json!({ "access_token": "at", "token_type": "Bearer", "refresh_token": refresh_token }),
        );
        let response = fixture.provider.refresh(&stored).await.unwrap();
        let tokens = response.into_tokens();
        assert_eq!(tokens.refresh_token, Some(Secret::new(expected)));
    }
    let token = fixture.endpoint("token");
    assert_eq!(
        fixture.sent(&token, "grant_type").as_deref(),
        Some("refresh_token")
    );
    assert_eq!(
        fixture.sent(&token, "refresh_token").as_deref(),
        Some("rt-0")
    );
    assert_eq!(fixture.sent(&token, "scope"), None);
}

/// The user of a refresh is the same as that of the sign-in, with an ID token or without.
#[tokio::test]
async fn a_refresh_identifies_the_same_user() {
    let fixture = fixture();
    fixture.answer_with(&fixture.id_token());
    let signed_in = fixture.sign_in().await.unwrap();
    let stored = tokens(None, Some("rt-1"));
    fixture.answer_with(&fixture.id_token().without("nonce"));
    let response = fixture.provider.refresh(&stored).await.unwrap();
    let refreshed = fixture.provider.identify(&response, None).await.unwrap();
    assert_eq!(refreshed.subject, signed_in.subject);
    assert!(refreshed.has_id_token);

    fixture.answer(
        200,
        json!({ "access_token": "at-2", "token_type": "Bearer" }),
    );
    let user = json!({ "sub": "alice", "groups": ["a"] }).to_string();
    fixture
        .network
        .serve(fixture.endpoint("userinfo"), 200, user);
    let response = fixture.provider.refresh(&stored).await.unwrap();
    let asked = fixture.provider.identify(&response, None).await.unwrap();
    assert_eq!(asked.subject, signed_in.subject);
    assert_eq!(asked.claims["groups"], json!(["a"]));
    assert!(!asked.has_id_token);
}

/// US1, US2: only the provider's refusal of the token ends the sign-in. Everything else is
/// temporary.
#[tokio::test]
async fn errors_of_a_refresh_are_told_apart() {
    let fixture = fixture();
    let stored = tokens(None, Some("rt-0"));
    for (status, error, code) in [
        (400, "invalid_grant", "provider.sign_in_ended"),
        (400, "interaction_required", "provider.sign_in_ended"),
        (401, "invalid_client", "provider.application_rejected"),
        (400, "invalid_client", "provider.application_rejected"),
        (400, "unauthorized_client", "provider.application_rejected"),
        (400, "invalid_request", "provider.application_rejected"),
        (400, "invalid_scope", "provider.application_rejected"),
        (400, "temporarily_unavailable", "provider.unreachable"),
        (400, "unknown_error", "provider.response_invalid"),
        (500, "invalid_grant", "provider.unreachable"),
        (503, "server_error", "provider.unreachable"),
        (429, "invalid_grant", "provider.unreachable"),
        (302, "invalid_grant", "provider.response_invalid"),
    ] {
        fixture.answer(status, json!({ "error": error }));
        let found = fixture.provider.refresh(&stored).await.unwrap_err();
        assert_eq!(found.code(), code, "{status} {error}");
        assert_eq!(found.is_temporary(), code != "provider.sign_in_ended");
    }
    fixture.network.fail(fixture.endpoint("token"));
    let error = fixture.provider.refresh(&stored).await.unwrap_err();
    assert_eq!(error.code(), "provider.unreachable");
    fixture.network.time_out(fixture.endpoint("token"));
    let error = fixture.provider.refresh(&stored).await.unwrap_err();
    assert_eq!(error.code(), "provider.unreachable");
}

/// US4: a missing refresh token is not the end of the sign-in.
#[tokio::test]
async fn a_missing_refresh_token_is_temporary() {
    let error = fixture()
        .provider
        .refresh(&tokens(Some("at"), None))
        .await
        .unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

/// US4: an expired access token shows nothing, so that the user does not sign in each hour.
#[tokio::test]
async fn an_expired_access_token_shows_nothing() {
    let fixture = fixture();
    let userinfo = fixture.endpoint("userinfo");
    let mut stored = tokens(Some("at"), None);
    stored.access_token_expires = Some(fixture.clock.now().saturating_add(Duration::from_secs(1)));
    fixture.network.serve(&userinfo, 200, r#"{"sub":"alice"}"#);
    let check = || fixture.provider.check_with_access_token(&stored);
    assert_eq!(&*check().await.unwrap().unwrap().provider_subject, "alice");
    fixture.network.serve(&userinfo, 401, "");
    assert_eq!(check().await, Err(ProviderError::SignInEnded));
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(check().await, Ok(None));
    assert_eq!(fixture.network.hits(&userinfo), 2);
}

/// US4: a provider without a user API shows nothing.
#[tokio::test]
async fn without_a_user_api_nothing_is_shown() {
    let fixture = fixture();
    fixture.publish(json!({ "userinfo_endpoint": null }));
    let stored = tokens(Some("at"), None);
    assert_eq!(
        fixture.provider.check_with_access_token(&stored).await,
        Ok(None)
    );
}

/// US2: an invalid ID token of a refresh does not show that the user was removed.
#[tokio::test]
async fn an_invalid_id_token_of_a_refresh_is_temporary() {
    let fixture = fixture();
    fixture.answer_with(&fixture.id_token().issued_in(60));
    let response = fixture
        .provider
        .refresh(&tokens(None, Some("rt-0")))
        .await
        .unwrap();
    let error = fixture
        .provider
        .identify(&response, None)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ProviderError::IdTokenInvalid("token.issued_in_future")
    );
    assert!(error.is_temporary());
}
