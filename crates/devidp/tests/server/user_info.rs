//! The userinfo endpoint (OpenID Connect Core section 5.3), and the claims of configured users.

use http::{Method, StatusCode};
use portcullis_devidp::{Fault, FaultKind, FaultPoint, Provider, UserSettings};
use serde_json::json;

use crate::{sign_in::*, support::*};

async fn user_info(server: &Server, token: &str) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", &*authorization)];
    server.send(Method::GET, "/userinfo", &headers, "").await
}

fn alice() -> UserSettings {
    let mut alice = UserSettings::new("alice");
    alice.claims = json!({ "groups": ["admins"], "email": "alice@corp.example", "picture": "p" })
        .as_object()
        .unwrap()
        .clone();
    alice
}

/// The claims of a user are those of the settings, as far as the scopes allow them.
#[tokio::test]
async fn claims_depend_on_the_user_and_the_scopes() {
    let server = app_server(|settings| settings.users = vec![alice()]).await;
    for (scope, user, expected) in [
        (
            "openid",
            "alice",
            json!({ "sub": "alice", "groups": ["admins"] }),
        ),
        (
            "openid email",
            "alice",
            json!({ "sub": "alice", "groups": ["admins"], "email": "alice@corp.example", "email_verified": true }),
        ),
        (
            "openid profile",
            "alice",
            json!({ "sub": "alice", "groups": ["admins"], "name": "alice", "preferred_username": "alice", "picture": "p" }),
        ),
        (
            "openid email",
            "bob",
            json!({ "sub": "bob", "email": "bob@example.com", "email_verified": true }),
        ),
    ] {
        let response = sign_in(&server, &[("scope", scope), ("login_hint", user)]).await;
        let info = user_info(&server, &response.text("access_token")).await;
        assert_eq!(info.status, StatusCode::OK);
        assert_eq!(info.json(), expected, "{scope} of {user}");
        let claims = id_token(&server, &response).await;
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(claims[name], *value, "{name}");
        }
    }
    let document = server.get("/.well-known/openid-configuration").await;
    assert_eq!(
        document.json()["userinfo_endpoint"],
        format!("{}/userinfo", server.issuer)
    );
}

/// Only an access token of a user with the scope `openid` is accepted.
#[tokio::test]
async fn other_tokens_are_rejected() {
    let server = app_server(|_| {}).await;
    let signed_in = sign_in(&server, &[("scope", "openid")]).await;
    let without = [("scope", "mcp:tools"), ("resource", RESOURCE)];
    let without = sign_in(&server, &without).await;
    let machine = [("grant_type", "client_credentials"), ("resource", RESOURCE)];
    let machine = app_token(&server, &machine).await;
    for (name, token, status, error) in [
        (
            "an ID token",
            signed_in.text("id_token"),
            StatusCode::UNAUTHORIZED,
            "invalid_token",
        ),
        (
            "a token without openid",
            without.text("access_token"),
            StatusCode::FORBIDDEN,
            "insufficient_scope",
        ),
        (
            "a token of a client",
            machine.text("access_token"),
            StatusCode::UNAUTHORIZED,
            "invalid_token",
        ),
        (
            "another string",
            "nonsense".to_owned(),
            StatusCode::UNAUTHORIZED,
            "invalid_token",
        ),
    ] {
        let response = user_info(&server, &token).await;
        assert_eq!(response.status, status, "{name}");
        assert_eq!(response.error(), error, "{name}");
    }
    let response = server.get("/userinfo").await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        response.header("www-authenticate"),
        Some("Bearer realm=\"portcullis-devidp\"")
    );
}

/// A revoked token and an expired one tell nothing.
#[tokio::test]
async fn a_revoked_or_expired_token_is_rejected() {
    let server = app_server(|_| {}).await;
    let revoked = sign_in(&server, &[("scope", "openid")])
        .await
        .text("access_token");
    let credentials = app_credentials();
    let headers = [FORM, ("authorization", &*credentials)];
    let form = encoded(&[("token", &revoked)]);
    server.send(Method::POST, "/revoke", &headers, &form).await;
    let response = user_info(&server, &revoked).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);

    let expired = sign_in(&server, &[("scope", "openid")])
        .await
        .text("access_token");
    assert_eq!(user_info(&server, &expired).await.status, StatusCode::OK);
    server.clock.advance(std::time::Duration::from_secs(300));
    let response = user_info(&server, &expired).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
}

/// The endpoint can be away, as that of a provider.
#[tokio::test]
async fn the_endpoint_can_fail() {
    let server = app_server(|_| {}).await;
    let response = sign_in(&server, &[("scope", "openid")]).await;
    let token = response.text("access_token");
    let fault = Fault {
        at: FaultPoint::UserInfo,
        kind: FaultKind::Status(StatusCode::SERVICE_UNAVAILABLE),
        times: std::num::NonZeroU32::new(1),
    };
    server.control.inject(fault).unwrap();
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK] {
        assert_eq!(user_info(&server, &token).await.status, status);
    }
}

/// GitHub has neither ID tokens nor a userinfo endpoint.
#[tokio::test]
async fn github_has_no_user_info() {
    let server = app_server(|settings| settings.provider = Some(Provider::GitHub)).await;
    let response = server.get(&server.path("userinfo")).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    let path = "/.well-known/oauth-authorization-server/login/oauth";
    let document = server.get(path).await.json();
    assert_eq!(document.get("userinfo_endpoint"), None);
}
