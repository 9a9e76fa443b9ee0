//! Logout tokens.

use portcullis_testkit::TokenBuilder;
use serde_json::json;

use crate::{
    ProviderKind,
    testing::{CLIENT, Fixture},
};

fn logout_token(fixture: &Fixture) -> TokenBuilder {
    let event = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    let token = fixture
        .test_issuer
        .token()
        .typ("logout+jwt")
        .audience(CLIENT);
    token
        .claim("events", event)
        .claim("sid", "session-1")
        .claim("jti", "j")
}

/// US5: a logout token names a session and a user.
#[tokio::test]
async fn a_logout_token_is_verified() {
    let fixture = Fixture::new(ProviderKind::Keycloak, "https://idp.example");
    let token = logout_token(&fixture);
    let verified = fixture
        .provider
        .verify_logout_token(&token.sign())
        .await
        .unwrap();
    assert_eq!(&*verified.jti, "j");
    assert_eq!(verified.sid.as_deref(), Some("session-1"));
    assert_eq!(verified.sub.as_deref(), Some("alice"));
}

/// US5: forged logout tokens are refused.
#[tokio::test]
async fn forged_logout_tokens_are_refused() {
    let fixture = Fixture::new(ProviderKind::Keycloak, "https://idp.example");
    let token = logout_token(&fixture);
    for token in [
        token.unsigned("none"),
        token.clone().audience("other").sign(),
        token.clone().claim("nonce", "n").sign(),
        fixture.id_token().sign(),
        String::new(),
    ] {
        let error = fixture
            .provider
            .verify_logout_token(&token)
            .await
            .unwrap_err();
        assert_eq!(error.code(), "provider.id_token_invalid", "{token}");
    }
}

/// A logout token that cannot be verified now may be sent again.
#[tokio::test]
async fn missing_keys_are_temporary() {
    let fixture = Fixture::new(ProviderKind::Keycloak, "https://idp.example");
    fixture.network.serve(fixture.endpoint("jwks"), 503, "");
    let token = logout_token(&fixture).sign();
    let error = fixture
        .provider
        .verify_logout_token(&token)
        .await
        .unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

/// GitHub has no logout tokens, and so accepts none.
#[tokio::test]
async fn a_provider_without_keys_accepts_no_logout_token() {
    let fixture = Fixture::new(ProviderKind::GitHub, "https://github.com");
    let token = logout_token(&fixture).sign();
    assert!(fixture.provider.verify_logout_token(&token).await.is_err());
}
