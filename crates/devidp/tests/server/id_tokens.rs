//! ID tokens (OpenID Connect Core sections 2, 3.1.3 and 12).

use http::Method;
use portcullis_devidp::{GrantType, SigningAlgorithm};
use portcullis_jose::CompactJws;
use serde_json::json;

use crate::{sign_in::*, support::*};

/// The response of the code exchange says who signed in, for this client and this request.
#[tokio::test]
async fn the_code_exchange_returns_an_id_token() {
    let server = app_server(|_| {}).await;
    let request = [
        ("scope", "openid profile email"),
        ("nonce", "a nonce & more"),
        ("login_hint", "bob"),
    ];
    let response = sign_in(&server, &request).await;
    assert_eq!(response.text("scope"), "email openid profile");
    let claims = id_token(&server, &response).await;
    let iat = claims["iat"].as_u64().unwrap();
    let access_token = response.text("access_token");
    let expected = json!({
        "iss": server.issuer, "aud": APP, "sub": "bob", "iat": iat, "exp": iat + 300, "auth_time": iat,
        "nonce": "a nonce & more", "sid": self::claims(&access_token)["sid"], "at_hash": claims["at_hash"],
        "name": "bob", "preferred_username": "bob", "email": "bob@example.com", "email_verified": true,
    });
    assert_eq!(claims, expected);
    assert_eq!(claims["at_hash"].as_str().unwrap().len(), 22);
}

/// Without `openid` there is no ID token, and without a nonce it has none. `openid` alone tells no
/// name and no e-mail address.
#[tokio::test]
async fn an_id_token_has_only_what_was_requested() {
    let server = app_server(|_| {}).await;
    let request = [("scope", "mcp:tools profile"), ("resource", RESOURCE)];
    let response = sign_in(&server, &request).await;
    assert_eq!(response.json().get("id_token"), None);

    let claims = id_token(&server, &sign_in(&server, &[("scope", "openid")]).await).await;
    for absent in ["nonce", "name", "preferred_username", "email"] {
        assert_eq!(claims.get(absent), None, "{absent}");
    }
}

/// A refresh returns an ID token of the same sign-in, without the nonce.
#[tokio::test]
async fn a_refresh_returns_an_id_token_without_nonce() {
    let server = app_server(|_| {}).await;
    let request = [("scope", "openid offline_access"), ("nonce", "n")];
    let first = sign_in(&server, &request).await;
    let signed_in = id_token(&server, &first).await;
    assert_eq!(signed_in["nonce"], "n");
    server.clock.advance(std::time::Duration::from_secs(60));

    let refresh_token = first.text("refresh_token");
    let request = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &*refresh_token),
    ];
    let refreshed = id_token(&server, &app_token(&server, &request).await).await;
    for same in ["iss", "aud", "sub", "sid", "auth_time"] {
        assert_eq!(refreshed[same], signed_in[same], "{same}");
    }
    assert_eq!(refreshed.get("nonce"), None);
    assert_eq!(
        refreshed["iat"].as_u64().unwrap(),
        signed_in["iat"].as_u64().unwrap() + 60
    );
}

/// An ID token is not an access token, although it has the same type and issuer.
#[tokio::test]
async fn an_id_token_is_not_an_access_token() {
    let server = app_server(|_| {}).await;
    let response = sign_in(&server, &[("scope", "openid")]).await;
    for (member, is_active) in [("access_token", true), ("id_token", false)] {
        let credentials = app_credentials();
        let headers = [FORM, ("authorization", &*credentials)];
        let form = encoded(&[("token", &response.text(member))]);
        let introspected = server
            .send(Method::POST, "/introspect", &headers, &form)
            .await;
        assert_eq!(introspected.json()["active"], is_active, "{member}");
    }
}

/// A client without a user gets neither an ID token nor the scopes of one.
#[tokio::test]
async fn a_client_without_a_user_has_no_id_token() {
    let server = app_server(|_| {}).await;
    let request = |scope| {
        [
            ("grant_type", "client_credentials"),
            ("resource", RESOURCE),
            ("scope", scope),
        ]
    };
    let response = app_token(&server, &request("openid mcp:tools")).await;
    assert_eq!(response.text("scope"), "mcp:tools");
    assert_eq!(response.json().get("id_token"), None);
    let response = app_token(&server, &request("openid")).await;
    assert_eq!(response.error(), "invalid_scope");
}

/// A repeated nonce is an error, so that client and server never read different ones.
#[tokio::test]
async fn a_repeated_nonce_is_rejected() {
    let server = app_server(|_| {}).await;
    let verifier = verifier();
    let request = [
        ("response_type", "code"),
        ("client_id", APP),
        ("redirect_uri", APP_REDIRECT),
        ("code_challenge", verifier.challenge()),
        ("code_challenge_method", "S256"),
        ("scope", "openid"),
        ("nonce", "a"),
        ("nonce", "b"),
    ];
    let response = server.authorize(&request).await;
    assert_eq!(
        response.redirect_parameter("error").as_deref(),
        Some("invalid_request")
    );
}

/// The signature has the algorithm of the settings, which the metadata names.
#[tokio::test]
async fn id_tokens_have_the_algorithm_of_the_settings() {
    for (algorithm, name) in [
        (SigningAlgorithm::Rs256, "RS256"),
        (SigningAlgorithm::Es256, "ES256"),
    ] {
        let server = app_server(|settings| settings.signing_algorithm = algorithm).await;
        let response = sign_in(&server, &[("scope", "openid")]).await;
        let token = response.text("id_token");
        let compact = CompactJws::parse(&token, 16 * 1024).unwrap();
        assert_eq!(compact.header().alg().as_str(), name);
        let path = "/.well-known/openid-configuration";
        let metadata = server.get(path).await.json();
        assert_eq!(
            metadata["id_token_signing_alg_values_supported"],
            json!([name])
        );
    }
}

/// A device gets an ID token without a nonce.
#[tokio::test]
async fn a_device_gets_an_id_token() {
    let server = app_server(|settings| {
        settings.clients[0].grant_types = vec![GrantType::DeviceCode];
    })
    .await;
    let credentials = app_credentials();
    let headers = [FORM, ("authorization", &*credentials)];
    let form = encoded(&[("scope", "openid")]);
    let started = server
        .send(Method::POST, "/device_authorization", &headers, &form)
        .await;
    let device_code = started.text("device_code");
    let request = [
        ("grant_type", GrantType::DeviceCode.as_str()),
        ("device_code", &device_code),
    ];
    let claims = id_token(&server, &app_token(&server, &request).await).await;
    assert_eq!(claims["sub"], "alice");
    assert_eq!(claims.get("nonce"), None);
}
