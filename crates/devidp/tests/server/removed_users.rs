//! Users who are removed while they have tokens.

use http::{Method, StatusCode};
use portcullis_devidp::Provider;
use serde_json::json;

use crate::{sign_in::*, support::*};

async fn change(server: &Server, user: &str, action: &str) -> StatusCode {
    let body = json!({ "user": user, "action": action }).to_string();
    let response = server
        .send(Method::POST, "/admin/user", &[JSON], &body)
        .await;
    response.status
}

/// The tokens of a removed user end, and the user cannot sign in until it is restored. Other users
/// keep theirs.
#[tokio::test]
async fn a_removed_user_has_no_access() {
    let server = app_server(|settings| settings.admin = true).await;
    let scope = ("scope", "openid offline_access");
    let alice = sign_in(&server, &[scope]).await;
    let bob = sign_in(&server, &[scope, ("login_hint", "bob")]).await;
    let user_info = async |response: &Response| {
        let authorization = format!("Bearer {}", response.text("access_token"));
        let headers = [("authorization", &*authorization)];
        let response = server.send(Method::GET, "/userinfo", &headers, "").await;
        response.status
    };
    let refresh = async |response: &Response| {
        let token = response.text("refresh_token");
        let request = [("grant_type", "refresh_token"), ("refresh_token", &*token)];
        app_token(&server, &request).await
    };
    assert_eq!(user_info(&alice).await, StatusCode::OK);

    assert_eq!(
        change(&server, "alice", "remove").await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        change(&server, "alice", "remove").await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(user_info(&alice).await, StatusCode::UNAUTHORIZED);
    assert_eq!(refresh(&alice).await.error(), "invalid_grant");
    assert_eq!(user_info(&bob).await, StatusCode::OK);
    assert_eq!(refresh(&bob).await.status, StatusCode::OK);

    let verifier = verifier();
    let request = [
        ("response_type", "code"),
        ("client_id", APP),
        ("redirect_uri", APP_REDIRECT),
        ("code_challenge", verifier.challenge()),
        ("code_challenge_method", "S256"),
        scope,
    ];
    let denied = server.authorize(&request).await;
    assert_eq!(
        denied.redirect_parameter("error").as_deref(),
        Some("access_denied")
    );

    assert_eq!(
        change(&server, "alice", "restore").await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        change(&server, "alice", "restore").await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        user_info(&sign_in(&server, &[scope]).await).await,
        StatusCode::OK
    );
    assert_eq!(refresh(&alice).await.error(), "invalid_grant");
}

/// A code that was issued before the removal is worthless.
#[tokio::test]
async fn a_code_of_a_removed_user_is_unknown() {
    let server = app_server(|_| {}).await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    assert!(server.control.remove_user("alice"));
    let response = server
        .token(&token_request(&client, &code, &verifier))
        .await;
    assert_eq!(response.error(), "invalid_grant");
}

/// The API of GitHub answers for a removed user as for a wrong token.
#[tokio::test]
async fn github_does_not_know_a_removed_user() {
    let server = app_server(|settings| settings.provider = Some(Provider::GitHub)).await;
    let token = {
        let response = sign_in(&server, &[("scope", "read:user")]).await;
        let mut pairs = url::form_urlencoded::parse(response.body.as_bytes());
        let (_, token) = pairs.find(|(name, _)| name == "access_token").unwrap();
        format!("Bearer {token}")
    };
    let headers = [("authorization", &*token), ("user-agent", "tests")];
    let user = async || server.send(Method::GET, "/user", &headers, "").await.status;
    assert_eq!(user().await, StatusCode::OK);
    server.control.remove_user("alice");
    assert_eq!(user().await, StatusCode::UNAUTHORIZED);
}
