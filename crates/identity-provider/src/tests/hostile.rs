//! Hostile and broken providers.

use portcullis_testkit::TestIssuer;
use serde_json::json;

use crate::{
    ProviderError, ProviderKind,
    testing::{Fixture, NONCE, SECRET, VERIFIER, tokens},
};

fn fixture() -> Fixture {
    Fixture::new(ProviderKind::Oidc, "https://idp.example")
}

/// Answers of the token endpoint that are not token responses are refused, and never sign in.
#[tokio::test]
async fn malformed_token_responses_are_refused() {
    let fixture = fixture();
    let token = fixture.endpoint("token");
    let deep = format!(
        r#"{{"access_token":"a","token_type":"Bearer","x":{}{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let huge = format!(
        r#"{{"access_token":"a","token_type":"Bearer","x":"{}"}}"#,
        "x".repeat(65536)
    );
    for body in [
        "",
        "<html><body>error</body></html>",
        "access_token=a&token_type=bearer",
        "[]",
        "null",
        r#"{"access_token":5,"token_type":"Bearer"}"#,
        r#"{"access_token":"a"}"#,
        r#"{"access_token":"a","token_type":"DPoP"}"#,
        r#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#,
        r#"{"access_token":"a","token_type":"Bearer","refresh_token":["r"]}"#,
        r#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#,
        r#"{"access_token":"a","token_type":"Bearer","expires_in":-1}"#,
        r#"{"access_token":"a","token_type":"Bearer","id_token":{}}"#,
        &deep,
        &huge,
    ] {
        for status in [200, 400] {
            fixture.network.serve(&token, status, body.to_owned());
            let error = fixture.redeem().await.unwrap_err();
            assert_eq!(
                error.code(),
                "provider.response_invalid",
                "{status} {body:.80}"
            );
        }
    }
}

/// Answers of the user API that are too large or of the wrong type are refused.
#[tokio::test]
async fn malformed_user_info_is_refused() {
    let fixture = fixture();
    fixture.answer_with(&fixture.id_token());
    let userinfo = fixture.endpoint("userinfo");
    let huge = format!(r#"{{"sub":"alice","x":"{}"}}"#, "x".repeat(65536));
    for body in [
        "",
        "<html>",
        "eyJhbGciOiJSUzI1NiJ9.e30.AAAA",
        r#"{"sub":"alice","sub":"bob"}"#,
        r#"{"sub":["alice"]}"#,
        r#"{"sub":"alice","_claim_names":[]}"#,
        &huge,
    ] {
        fixture.network.serve(&userinfo, 200, body.to_owned());
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{body:.80}");
    }
}

/// Metadata that is missing, incomplete, insecure or of another issuer is refused, as a temporary
/// error.
#[tokio::test]
async fn unusable_metadata_is_refused() {
    for changes in [
        json!({ "issuer": "https://evil.example" }),
        json!({ "token_endpoint": null }),
        json!({ "authorization_endpoint": null }),
        json!({ "authorization_endpoint": "javascript:alert(1)" }),
        json!({ "token_endpoint": "http://idp.example/token" }),
        json!({ "userinfo_endpoint": "http://idp.example/userinfo" }),
        json!({ "userinfo_endpoint": "not a URL" }),
    ] {
        let fixture = fixture();
        fixture.publish(changes.clone());
        let error = fixture.redeem().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{changes}");
        assert!(error.is_temporary());
    }
    let fixture = fixture();
    fixture.network.fail(fixture.test_issuer.metadata_url());
    let error = fixture.redeem().await.unwrap_err();
    assert_eq!(error.code(), "provider.unreachable");
}

/// A metadata document must not send this server's secrets to the operator's own network.
#[tokio::test]
async fn endpoints_at_private_addresses_are_not_called() {
    for url in ["https://10.0.0.1/token", "https://169.254.169.254/token"] {
        let fixture = fixture();
        fixture.publish(json!({ "token_endpoint": url }));
        let error = fixture.redeem().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{url}");
        assert_eq!(fixture.network.hits(url), 0);
    }
}

/// PR3: keys of another provider with the same key identifier sign nothing here.
#[tokio::test]
async fn tokens_signed_by_others_are_refused() {
    let fixture = fixture();
    let token = fixture.id_token();
    let attacker = TestIssuer::new("https://evil.example").key();
    let mut forged = vec![
        token.clone().signed_by(attacker.clone()).sign(),
        token.self_signed(&attacker),
        token.unsigned("none"),
    ];
    forged.extend(token.hmac_with_public_key());
    for token in forged {
        fixture.answer(
            200,
            json!({ "access_token": "a", "token_type": "Bearer", "id_token": token }),
        );
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), "provider.id_token_invalid");
    }
}

/// A provider without keys cannot be asked now; the sign-in has not failed for good.
#[tokio::test]
async fn missing_keys_are_temporary() {
    let fixture = fixture();
    fixture.network.serve(fixture.endpoint("jwks"), 503, "");
    fixture.answer_with(&fixture.id_token());
    let error = fixture.sign_in().await.unwrap_err();
    assert_eq!(error.code(), "provider.unreachable");
    assert!(error.is_temporary());
}

/// PR7: neither errors nor `Debug` show tokens, codes, secrets or users.
#[tokio::test]
async fn nothing_secret_is_printed() {
    let fixture = fixture();
    fixture
        .network
        .serve(fixture.endpoint("userinfo"), 200, r#"{"sub":"alice"}"#);
    fixture.answer_with(&fixture.id_token().claim("email", "alice@example.com"));
    let response = fixture.redeem().await.unwrap();
    let identity = fixture
        .provider
        .identify(&response, Some(NONCE))
        .await
        .unwrap();
    fixture.answer(
        400,
        json!({ "error": "hush", "error_description": "hush alice" }),
    );
    let error = fixture.redeem().await.unwrap_err();
    let shown = format!(
        "{response:?} {identity:?} {error} {error:?} {:?} {:?} {:?}",
        fixture.provider,
        fixture.provider.settings(),
        tokens(Some("at-1"), Some("rt-1")),
    );
    for hidden in ["at-1", "rt-1", SECRET, VERIFIER, "alice", "hush", "eyJ"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
}

/// A redirect is not followed, wherever it leads.
#[tokio::test]
async fn redirects_are_not_followed() {
    let fixture = fixture();
    fixture.network.serve(fixture.endpoint("token"), 307, "");
    assert_eq!(
        fixture.redeem().await.unwrap_err(),
        ProviderError::ResponseInvalid("status.redirect")
    );
    let stored = tokens(Some("at"), None);
    fixture.network.serve(fixture.endpoint("userinfo"), 302, "");
    assert_eq!(
        fixture.provider.check_with_access_token(&stored).await,
        Err(ProviderError::ResponseInvalid("status.redirect"))
    );
}
