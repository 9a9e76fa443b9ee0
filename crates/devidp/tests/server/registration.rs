//! Dynamic client registration and its limits.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_devidp::Registration;
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::Secret;
use serde_json::{Value, json};

use crate::support::*;

/// The response to a registration has the client's credentials.
#[tokio::test]
async fn a_client_registers() {
    let server = Server::start(|_| {}).await;
    let body = json!({
        "client_name": "Weather Notes",
        "redirect_uris": [REDIRECT, "https://client.example/cb"],
        "grant_types": ["authorization_code", "client_credentials", "implicit"],
        "response_types": ["code"],
        "unknown": { "is": "ignored" },
    });
    let response = server.register_with(&body).await;
    assert_eq!(response.status, StatusCode::CREATED);
    assert_eq!(response.header("cache-control"), Some("no-store"));

    let client = response.json();
    assert!(client["client_id"].as_str().unwrap().len() >= 22);
    assert!(client["client_secret"].as_str().unwrap().len() >= 43);
    assert_eq!(client["client_secret_expires_at"], 0);
    assert!(client["client_id_issued_at"].is_u64());
    assert_eq!(client["client_name"], "Weather Notes");
    assert_eq!(client["redirect_uris"], body["redirect_uris"]);
    assert_eq!(
        client["grant_types"],
        json!(["authorization_code"]),
        "the granted types, not the requested ones"
    );
    assert_eq!(client["response_types"], json!(["code"]));
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_basic");
    assert!(client.get("unknown").is_none());
}

#[tokio::test]
async fn a_public_client_gets_no_secret() {
    let server = Server::start(|_| {}).await;
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let client = server.register_with(&body).await.json();
    assert!(client.get("client_secret").is_none());
    assert!(client.get("client_secret_expires_at").is_none());
    assert!(client.get("client_name").is_none());
}

/// K1: only https and loopback redirect URIs are accepted.
#[tokio::test]
async fn other_redirect_uris_are_rejected() {
    let server = Server::start(|_| {}).await;
    let many: Vec<String> = (0..11)
        .map(|number| format!("https://client.example/{number}"))
        .collect();
    for redirect_uris in [
        json!(null),
        json!([]),
        json!(["http://client.example/cb"]),
        json!([REDIRECT, "javascript:alert(1)"]),
        json!(["https://client.example/#a"]),
        json!(["com.example:/cb"]),
        json!(many),
    ] {
        let response = server
            .register_with(&json!({ "redirect_uris": redirect_uris }))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{redirect_uris}");
        assert_eq!(response.error(), "invalid_redirect_uri", "{redirect_uris}");
    }
}

#[tokio::test]
async fn invalid_metadata_is_rejected() {
    let server = Server::start(|_| {}).await;
    let with = |name: &str, value: Value| {
        let mut body = json!({ "redirect_uris": [REDIRECT] });
        body[name] = value;
        body.to_string()
    };
    for body in [
        with("grant_types", json!(["client_credentials"])),
        with("response_types", json!(["token"])),
        with("token_endpoint_auth_method", json!("private_key_jwt")),
        with("client_name", json!("a".repeat(101))),
        with("client_name", json!("a\nb")),
        with("client_name", json!(1)),
        with("redirect_uris", json!("https://client.example/")),
        "[]".to_owned(),
        "{".to_owned(),
        format!(
            "{{\"redirect_uris\":[\"{REDIRECT}\"],\"client_name\":\"a\",\"client_name\":\"b\"}}"
        ),
        "[".repeat(10_000),
    ] {
        let response = server.send(Method::POST, "/register", &[JSON], &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(response.error(), "invalid_client_metadata", "{body}");
    }
}

/// Keys must be in `jwks`. The error for a `jwks_uri` explains this.
#[tokio::test]
async fn a_jwks_uri_is_rejected() {
    let server = Server::start(|_| {}).await;
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let keys = json!({ "keys": [key.public_jwk()] });
    let uri = json!("https://client.example/keys");
    for (jwks, jwks_uri, message) in [
        (
            None,
            Some(&uri),
            "send the public keys as a JWK set in jwks",
        ),
        (Some(&keys), Some(&uri), "jwks_uri is not supported"),
        (None, None, "requires the public keys as a JWK set in jwks"),
        (Some(&json!({ "keys": [] })), None, "no usable public key"),
    ] {
        let mut body =
            json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "private_key_jwt" });
        body["jwks"] = jwks.cloned().unwrap_or_default();
        body["jwks_uri"] = jwks_uri.cloned().unwrap_or_default();
        body.as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        let response = server.register_with(&body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(&*response.error(), "invalid_client_metadata");
        assert!(
            response.json()["error_description"]
                .as_str()
                .unwrap()
                .contains(message),
            "{}",
            response.body
        );
    }
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "private_key_jwt", "jwks": keys });
    assert_eq!(
        server.register_with(&body).await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn large_bodies_and_other_types_are_rejected() {
    let server = Server::start(|_| {}).await;
    let large = json!({ "redirect_uris": [REDIRECT], "x": "a".repeat(16 * 1024) });
    let response = server.register_with(&large).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(&*response.error(), "invalid_client_metadata");
    let response = server
        .send(Method::POST, "/register", &[FORM], "redirect_uris=x")
        .await;
    assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// K1: the number of clients is limited. Of those that no user approved, the least recently used
/// one is evicted.
#[tokio::test]
async fn the_least_recently_used_client_is_evicted() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.max_clients = 3;
    })
    .await;
    let approved = server.register().await;
    let verifier = verifier();
    server.code(&approved, &verifier).await;
    let used = server.register().await;
    let unused = server.register().await;
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(
        server.refresh(&used, "x").await.error(),
        "unauthorized_client"
    );
    let last = server.register().await;

    let status = async |client: &str| {
        server
            .authorize(&authorization_request(client, verifier.challenge()))
            .await
            .status
    };
    assert_eq!(status(&unused).await, StatusCode::BAD_REQUEST);
    for client in [&approved, &used, &last] {
        assert_eq!(status(client).await, StatusCode::FOUND);
    }

    let response = server
        .register_with(&json!({ "redirect_uris": [REDIRECT] }))
        .await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.error(), "temporarily_unavailable");
}

/// K1: a client expires a day after its last use.
#[tokio::test]
async fn an_unused_client_expires() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let server = Server::with_auto_consent().await;
    let (refreshing, tokens) = server.refreshable().await;
    let authorizing = server.register().await;
    let unused = server.register().await;
    let verifier = verifier();
    let authorize = async |client: &str| {
        let request = authorization_request(client, verifier.challenge());
        server.authorize(&request).await.status
    };
    server.clock.advance(DAY - Duration::from_secs(1));
    let refreshed = server
        .refresh(&refreshing, tokens["refresh_token"].as_str().unwrap())
        .await;
    assert_eq!(authorize(&authorizing).await, StatusCode::FOUND);

    server.clock.advance(Duration::from_secs(1));
    assert_eq!(authorize(&unused).await, StatusCode::BAD_REQUEST);
    assert_eq!(authorize(&authorizing).await, StatusCode::FOUND);
    let refreshed = server
        .refresh(&refreshing, &refreshed.text("refresh_token"))
        .await;
    assert_eq!(refreshed.status, StatusCode::OK, "{}", refreshed.body);
}

/// K1: if an initial access token is configured, requests without it are rejected (RFC 7591 section
/// 3).
#[tokio::test]
async fn an_initial_access_token_is_required() {
    let server = Server::start(|settings| {
        settings.registration = Registration::WithToken(Secret::new("initial"));
    })
    .await;
    let body = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let register = async |authorization: &[&str]| {
        let headers: Vec<_> = [JSON]
            .into_iter()
            .chain(authorization.iter().map(|value| ("authorization", *value)))
            .collect();
        server
            .send(Method::POST, "/register", &headers, &body)
            .await
    };
    let missing = "Bearer realm=\"portcullis-devidp\"";
    let invalid = "Bearer realm=\"portcullis-devidp\", error=\"invalid_token\"";
    for (wrong, challenge) in [
        (&[][..], missing),
        (&["Bearer wrong"], invalid),
        (&["Basic initial"], missing),
        (&["initial"], missing),
        (&["Bearer initial", "Bearer initial"], missing),
    ] {
        let response = register(wrong).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{wrong:?}");
        assert_eq!(&*response.error(), "invalid_token", "{wrong:?}");
        assert_eq!(
            response.header("www-authenticate"),
            Some(challenge),
            "{wrong:?}"
        );
    }
    for right in ["Bearer initial", "bearer initial"] {
        assert_eq!(register(&[right]).await.status, StatusCode::CREATED);
    }
}

/// If registration is closed, requests are rejected and the metadata has no registration endpoint.
#[tokio::test]
async fn registration_can_be_closed() {
    let server = Server::start(|settings| settings.registration = Registration::Closed).await;
    let response = server
        .register_with(&json!({ "redirect_uris": [REDIRECT] }))
        .await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
    assert_eq!(&*response.error(), "access_denied");
    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert!(metadata.get("registration_endpoint").is_none());
}
