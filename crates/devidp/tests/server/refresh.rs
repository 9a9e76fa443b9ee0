//! Refresh tokens are replaced on use; a reused one ends its session.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_devidp::ClientSettings;
use portcullis_metadata::Secret;

use crate::support::*;

const RESOURCE_CLIENT: (&str, &str) = ("resource", "hush");

async fn server() -> Server {
    Server::start(|settings| {
        settings.auto_consent = true;
        let resource =
            ClientSettings::with_secret(RESOURCE_CLIENT.0, Secret::new(RESOURCE_CLIENT.1));
        settings.clients = vec![ClientSettings {
            may_introspect: true,
            ..resource
        }];
    })
    .await
}

async fn is_active(server: &Server, token: &str) -> bool {
    let (id, secret) = RESOURCE_CLIENT;
    let form = encoded(&[
        ("token", token),
        ("client_id", id),
        ("client_secret", secret),
    ]);
    server
        .send(Method::POST, "/introspect", &[FORM], &form)
        .await
        .json()["active"]
        == true
}

fn assert_rejected(response: &Response, error: &str) {
    assert_eq!(
        response.status,
        StatusCode::BAD_REQUEST,
        "{}",
        response.body
    );
    assert_eq!(&*response.error(), error, "{}", response.body);
}

/// K1: each refresh issues a new access token and a new refresh token for the same session.
#[tokio::test]
async fn a_refresh_token_is_replaced_on_use() {
    let server = server().await;
    let (client, first) = server.refreshable().await;
    assert_eq!(first["scope"], "mcp:tools offline_access");
    let second = server
        .refresh(&client, first["refresh_token"].as_str().unwrap())
        .await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.header("cache-control"), Some("no-store"));
    assert_ne!(
        second.text("refresh_token"),
        first["refresh_token"].as_str().unwrap()
    );

    let old = claims(first["access_token"].as_str().unwrap());
    let new = claims(&second.text("access_token"));
    for same in ["iss", "aud", "sub", "azp", "sid", "scope", "auth_time"] {
        assert_eq!(old[same], new[same], "{same}");
    }
    assert_ne!(old["jti"], new["jti"]);

    let third = server.refresh(&client, &second.text("refresh_token")).await;
    assert_eq!(third.status, StatusCode::OK);
    assert!(is_active(&server, &third.text("access_token")).await);
    assert!(
        !is_active(&server, &third.text("refresh_token")).await,
        "a refresh token is nothing for a resource"
    );
}

/// K1: reuse of a replaced refresh token ends its session and no other (RFC 9700 section 4.14.2).
#[tokio::test]
async fn a_reused_refresh_token_ends_its_session() {
    let server = server().await;
    let ((client, first), (other_client, other)) =
        (server.refreshable().await, server.refreshable().await);
    let stolen = first["refresh_token"].as_str().unwrap();
    let second = server.refresh(&client, stolen).await;
    assert_rejected(&server.refresh(&client, stolen).await, "invalid_grant");
    assert_rejected(
        &server.refresh(&client, &second.text("refresh_token")).await,
        "invalid_grant",
    );
    assert!(!is_active(&server, first["access_token"].as_str().unwrap()).await);
    assert!(!is_active(&server, &second.text("access_token")).await);
    assert!(is_active(&server, other["access_token"].as_str().unwrap()).await);
    let response = server
        .refresh(&other_client, other["refresh_token"].as_str().unwrap())
        .await;
    assert_eq!(response.status, StatusCode::OK);
}

/// K1: reuse of a code revokes its tokens (RFC 6749 section 4.1.2).
#[tokio::test]
async fn a_reused_code_ends_its_session() {
    let server = server().await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let token = server
        .token(&token_request(&client, &code, &verifier))
        .await
        .text("access_token");
    assert!(is_active(&server, &token).await);
    assert_rejected(
        &server
            .token(&token_request(&client, &code, &verifier))
            .await,
        "invalid_grant",
    );
    assert!(!is_active(&server, &token).await);
}

/// K1: a refresh token requires the grant type in the registration and `offline_access` in the
/// request.
#[tokio::test]
async fn a_refresh_token_requires_offline_access() {
    let server = server().await;
    let verifier = verifier();

    // The client is not registered for refresh tokens, so the scope is not granted.
    let client = server.register().await;
    let request = changed(
        &authorization_request(&client, verifier.challenge()),
        "scope",
        "mcp:tools offline_access",
    );
    let code = server
        .authorize(&request)
        .await
        .redirect_parameter("code")
        .unwrap();
    let response = server
        .token(&token_request(&client, &code, &verifier))
        .await
        .json();
    assert_eq!(response["scope"], "mcp:tools");
    assert_eq!(response.get("refresh_token"), None);

    // The client is registered but does not request the scope.
    let (client, _) = server.refreshable().await;
    for scope in [Some("mcp:tools"), None] {
        let parameters = changed(
            &authorization_request(&client, verifier.challenge()),
            "scope",
            scope,
        );
        let code = server
            .authorize(&parameters)
            .await
            .redirect_parameter("code")
            .unwrap();
        let response = server
            .token(&token_request(&client, &code, &verifier))
            .await
            .json();
        assert!(response.get("refresh_token").is_none(), "{scope:?}");
    }
}

/// A refresh token is bound to its client, resource and scopes. A failed request does not
/// invalidate it.
#[tokio::test]
async fn a_refresh_token_is_bound_to_its_session() {
    let server = server().await;
    let ((client, first), (stranger, _)) = (server.refreshable().await, server.refreshable().await);
    let token = first["refresh_token"].as_str().unwrap();
    let good = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", token),
    ];
    for (name, value, error) in [
        ("client_id", Some(&*stranger), "invalid_grant"),
        (
            "resource",
            Some("http://127.0.0.1:3000/other"),
            "invalid_target",
        ),
        ("scope", Some("mcp:tools mcp:admin"), "invalid_scope"),
        ("scope", Some("\u{7f}"), "invalid_scope"),
        ("refresh_token", None, "invalid_request"),
        ("refresh_token", Some("nothing"), "invalid_grant"),
    ] {
        assert_rejected(&server.token(&changed(&good, name, value)).await, error);
    }
    let narrowed = server
        .token(&[&good[..], &[("scope", "mcp:tools"), ("resource", RESOURCE)]].concat())
        .await;
    assert_eq!(narrowed.text("scope"), "mcp:tools");

    let whole = server
        .refresh(&client, &narrowed.text("refresh_token"))
        .await;
    assert_eq!(whole.text("scope"), "mcp:tools offline_access");
}

/// K1: revoking a refresh token ends its session.
#[tokio::test]
async fn revoking_a_refresh_token_ends_its_session() {
    let server = server().await;
    let ((client, first), (stranger, _)) = (server.refreshable().await, server.refreshable().await);
    let token = first["refresh_token"].as_str().unwrap();
    let revoke = async |client: &str| {
        let form = encoded(&[
            ("client_id", client),
            ("token", token),
            ("token_type_hint", "refresh_token"),
        ]);
        server.send(Method::POST, "/revoke", &[FORM], &form).await
    };
    assert_rejected(&revoke(&stranger).await, "invalid_request");
    assert!(is_active(&server, first["access_token"].as_str().unwrap()).await);
    assert_eq!(revoke(&client).await.status, StatusCode::OK);
    assert_rejected(&server.refresh(&client, token).await, "invalid_grant");
    assert!(!is_active(&server, first["access_token"].as_str().unwrap()).await);
}

/// A refresh token expires if it is not used.
#[tokio::test]
async fn an_unused_refresh_token_expires() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.refresh_token_lifetime = Duration::from_secs(3600);
    })
    .await;
    let (client, first) = server.refreshable().await;
    server.clock.advance(Duration::from_secs(3599));
    let second = server
        .refresh(&client, first["refresh_token"].as_str().unwrap())
        .await;
    server.clock.advance(Duration::from_secs(3599));
    let third = server.refresh(&client, &second.text("refresh_token")).await;
    server.clock.advance(Duration::from_secs(3600));
    assert_rejected(
        &server.refresh(&client, &third.text("refresh_token")).await,
        "invalid_grant",
    );
}
