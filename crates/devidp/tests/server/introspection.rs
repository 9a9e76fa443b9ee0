//! Introspection shows valid tokens as active, and revocation makes them inactive.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use portcullis_devidp::ClientSettings;
use portcullis_metadata::Secret;
use serde_json::json;

use crate::support::*;

const CLIENT: &str = "http://127.0.0.1:3000/mcp";
const SECRET: &str = "a secret: 100%";
const INACTIVE: &str = r#"{"active":false}"#;

async fn server() -> Server {
    Server::start(|settings| {
        settings.auto_consent = true;
        let resource = ClientSettings::with_secret(CLIENT, Secret::new(SECRET));
        settings.clients = vec![ClientSettings {
            may_introspect: true,
            ..resource
        }];
    })
    .await
}

/// Returns a client and a token that was issued to it.
async fn issued(server: &Server) -> (String, String) {
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let response = server
        .token(&token_request(&client, &code, &verifier))
        .await;
    (
        client,
        response.json()["access_token"].as_str().unwrap().to_owned(),
    )
}

async fn post(
    server: &Server,
    path: &str,
    form: &[(&str, &str)],
    authorization: Option<&str>,
) -> Response {
    let headers: Vec<_> = [FORM]
        .into_iter()
        .chain(authorization.map(|value| ("authorization", value)))
        .collect();
    server
        .send(Method::POST, path, &headers, &encoded(form))
        .await
}

async fn introspect(server: &Server, token: &str) -> Response {
    post(
        server,
        "/introspect",
        &[
            ("token", token),
            ("client_id", CLIENT),
            ("client_secret", SECRET),
        ],
        None,
    )
    .await
}

async fn revoke(server: &Server, client: &str, token: &str) -> Response {
    post(
        server,
        "/revoke",
        &[("token", token), ("client_id", client)],
        None,
    )
    .await
}

/// K1: a valid token is active, and the response has its claims.
#[tokio::test]
async fn a_valid_token_is_active() {
    let server = server().await;
    let (client, token) = issued(&server).await;
    let response = introspect(&server, &token).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.header("cache-control"), Some("no-store"));

    let claims = response.json();
    assert_eq!(claims["active"], true);
    assert_eq!(claims["iss"].as_str(), Some(&*server.issuer));
    assert_eq!(claims["aud"].as_str(), Some(RESOURCE));
    assert_eq!(claims["client_id"].as_str(), Some(&*client));
    assert_eq!(claims["sub"].as_str(), Some("alice"));
    assert_eq!(claims["scope"].as_str(), Some("mcp:tools"));
    assert_eq!(claims["token_type"].as_str(), Some("Bearer"));
    assert_eq!(
        claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
        300
    );
    assert!(!response.body.contains(&token));
}

/// All other tokens are inactive, and the response has no other members.
#[tokio::test]
async fn other_tokens_are_inactive() {
    let (server, other) = (server().await, server().await);
    let (_, token) = issued(&server).await;
    let (_, foreign) = issued(&other).await;
    let (signed, _) = token.rsplit_once('.').unwrap();
    let (other_signed, _) = foreign.rsplit_once('.').unwrap();
    for bad in [
        "rubbish",
        "a.b.c",
        &foreign,
        &format!("{signed}."),
        &token.replace(signed, other_signed),
    ] {
        let response = introspect(&server, bad).await;
        assert_eq!(response.status, StatusCode::OK, "{bad}");
        assert_eq!(&*response.body, INACTIVE, "{bad}");
    }
    server.clock.advance(Duration::from_secs(299));
    assert_eq!(introspect(&server, &token).await.json()["active"], true);

    server.clock.advance(Duration::from_secs(1));
    assert_eq!(introspect(&server, &token).await.body, INACTIVE);
}

/// K1: only configured resources may introspect. They authenticate with one method.
#[tokio::test]
async fn the_resource_must_authenticate() {
    let server = server().await;
    let (client, token) = issued(&server).await;
    let basic =
        |id: &str, secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let good = basic("http%3A%2F%2F127.0.0.1%3A3000%2Fmcp", "a+secret%3A+100%25");
    let token = ("token", token.as_str());
    let named = ("client_id", CLIENT);
    for form in [&[token][..], &[token, named]] {
        assert_eq!(
            post(&server, "/introspect", form, Some(&good)).await.status,
            StatusCode::OK
        );
    }
    let rejected = [
        (vec![token], None),
        (vec![token, named], None),
        (vec![token, named, ("client_secret", "wrong")], None),
        (
            vec![token, ("client_id", "somebody"), ("client_secret", SECRET)],
            None,
        ),
        (vec![token, ("client_id", &client)], None),
        (
            vec![token],
            Some(basic("http%3A%2F%2F127.0.0.1%3A3000%2Fmcp", "wrong")),
        ),
        (vec![token], Some(basic("somebody", "a+secret%3A+100%25"))),
        (vec![token], Some("Bearer x".to_owned())),
    ];
    for (form, authorization) in rejected {
        let response = post(&server, "/introspect", &form, authorization.as_deref()).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{form:?}");
        assert_eq!(&*response.error(), "invalid_client", "{form:?}");
    }
    for (form, authorization) in [
        (vec![token, named, ("client_secret", SECRET)], Some(&*good)),
        (vec![token, ("client_id", "somebody")], Some(&*good)),
        (vec![named, ("client_secret", SECRET)], None),
        (vec![token, token, named, ("client_secret", SECRET)], None),
    ] {
        let response = post(&server, "/introspect", &form, authorization).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{form:?}");
        assert_eq!(&*response.error(), "invalid_request", "{form:?}");
    }
    assert_eq!(
        server.get("/introspect").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
}

/// Without a configured resource, introspection is rejected. Registered clients may not introspect.
#[tokio::test]
async fn introspection_is_disabled_by_default() {
    let server = Server::with_auto_consent().await;
    let (_, token) = issued(&server).await;
    assert_eq!(
        introspect(&server, &token).await.status,
        StatusCode::UNAUTHORIZED
    );
    let body =
        json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post" });
    let client = server.register_with(&body).await;
    let (id, secret) = (client.text("client_id"), client.text("client_secret"));
    let form = [
        ("token", &*token),
        ("client_id", &*id),
        ("client_secret", &*secret),
    ];
    assert_eq!(
        post(&server, "/introspect", &form, None).await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// K1: a revoked token becomes inactive, and other tokens stay active.
#[tokio::test]
async fn a_revoked_token_is_inactive() {
    let server = server().await;
    let ((client, token), (_, other)) = (issued(&server).await, issued(&server).await);
    for _ in 0..2 {
        let response = revoke(&server, &client, &token).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(&*response.body, "");
        assert_eq!(introspect(&server, &token).await.body, INACTIVE);
    }
    assert_eq!(introspect(&server, &other).await.json()["active"], true);
    server.clock.advance(Duration::from_secs(299));
    assert_eq!(introspect(&server, &token).await.body, INACTIVE);
}

/// A client can revoke only its own tokens. Revoking an invalid token succeeds.
#[tokio::test]
async fn only_own_tokens_can_be_revoked() {
    let server = server().await;
    let ((client, token), (stranger, _)) = (issued(&server).await, issued(&server).await);
    let response = revoke(&server, &stranger, &token).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(&*response.error(), "invalid_request");
    assert_eq!(
        revoke(&server, "unknown", &token).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        post(&server, "/revoke", &[("client_id", &client)], None)
            .await
            .status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        revoke(&server, &client, "rubbish").await.status,
        StatusCode::OK
    );
    assert_eq!(introspect(&server, &token).await.json()["active"], true);
}
