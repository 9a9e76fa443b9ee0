//! The token endpoint rejects reused codes, other clients and malformed requests.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::*;

fn assert_rejected(response: &Response, status: StatusCode, error: &str) {
    assert_eq!(response.status, status, "{}", response.body);
    assert_eq!(&*response.error(), error, "{}", response.body);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert!(response.json().get("access_token").is_none());
}

/// K1: a code can be used once.
#[tokio::test]
async fn a_code_can_be_used_once() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let parameters = token_request(&client, &code, &verifier);
    assert_eq!(server.token(&parameters).await.status, StatusCode::OK);
    assert_rejected(
        &server.token(&parameters).await,
        StatusCode::BAD_REQUEST,
        "invalid_grant",
    );
}

/// K1: a code is bound to its client, redirect URI, verifier and resource. A failed request
/// invalidates it.
#[tokio::test]
async fn a_code_is_bound_to_its_request() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let stranger = server.register().await;
    let (verifier, other) = (verifier(), verifier());
    for (name, value, error) in [
        ("client_id", Some(&*stranger), "invalid_grant"),
        (
            "redirect_uri",
            Some("http://127.0.0.1:4322/callback"),
            "invalid_grant",
        ),
        ("code_verifier", Some(other.secret()), "invalid_grant"),
        ("code_verifier", Some("short"), "invalid_grant"),
        ("code_verifier", Some(verifier.challenge()), "invalid_grant"),
        (
            "resource",
            Some("http://127.0.0.1:3000/other"),
            "invalid_target",
        ),
    ] {
        let code = server.code(&client, &verifier).await;
        let good = token_request(&client, &code, &verifier);
        assert_rejected(
            &server.token(&changed(&good, name, value)).await,
            StatusCode::BAD_REQUEST,
            error,
        );
        assert_rejected(
            &server.token(&good).await,
            StatusCode::BAD_REQUEST,
            "invalid_grant",
        );
    }
}

/// A code expires after a minute.
#[tokio::test]
async fn a_code_expires() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let early = server.code(&client, &verifier).await;
    let late = server.code(&client, &verifier).await;
    server.clock.advance(Duration::from_millis(59_999));
    assert_eq!(
        server
            .token(&token_request(&client, &early, &verifier))
            .await
            .status,
        StatusCode::OK
    );
    server.clock.advance(Duration::from_millis(1));
    let response = server
        .token(&token_request(&client, &late, &verifier))
        .await;
    assert_rejected(&response, StatusCode::BAD_REQUEST, "invalid_grant");
}

#[tokio::test]
async fn malformed_requests_are_rejected() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let good = token_request(&client, &code, &verifier);
    let forged = format!("{}{}", &code[..22], "A".repeat(22));
    let twice = |name: &'static str| [good.clone(), vec![(name, "x")]].concat();
    for (parameters, status, error) in [
        (changed(&good, "grant_type", None), 400, "invalid_request"),
        (
            changed(&good, "grant_type", "refresh_token"),
            400,
            "unauthorized_client",
        ),
        (
            changed(&good, "grant_type", "client_credentials"),
            400,
            "unauthorized_client",
        ),
        (
            changed(&good, "grant_type", "password"),
            400,
            "unsupported_grant_type",
        ),
        (changed(&good, "code", None), 400, "invalid_request"),
        (
            changed(&good, "code_verifier", None),
            400,
            "invalid_request",
        ),
        (changed(&good, "code", "nothing"), 400, "invalid_grant"),
        (changed(&good, "code", &*forged), 400, "invalid_grant"),
        (twice("code"), 400, "invalid_request"),
        (twice("grant_type"), 400, "invalid_request"),
        (twice("client_id"), 400, "invalid_request"),
        (twice("resource"), 400, "invalid_target"),
        (changed(&good, "client_id", None), 401, "invalid_client"),
        (
            changed(&good, "client_id", "unknown"),
            401,
            "invalid_client",
        ),
        (changed(&good, "client_secret", "x"), 401, "invalid_client"),
    ] {
        let response = server.token(&parameters).await;
        assert_rejected(&response, StatusCode::from_u16(status).unwrap(), error);
        let challenge = (status == 401).then_some("Basic realm=\"portcullis-devidp\"");
        assert_eq!(response.header("www-authenticate"), challenge, "{error}");
    }
    assert_eq!(
        server.token(&good).await.status,
        StatusCode::OK,
        "none of these touched the code"
    );
}

#[tokio::test]
async fn other_content_types_and_methods_are_rejected() {
    let server = Server::with_auto_consent().await;
    let response = server.send(Method::POST, "/token", &[JSON], "{}").await;
    assert_rejected(
        &response,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "invalid_request",
    );
    let response = server
        .send(Method::POST, "/token", &[FORM], &"a".repeat(16 * 1024 + 1))
        .await;
    assert_rejected(&response, StatusCode::PAYLOAD_TOO_LARGE, "invalid_request");
    let response = server.get("/token?grant_type=authorization_code").await;
    assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.header("allow"), Some("POST"));
}

async fn confidential(server: &Server, method: &str) -> (String, String) {
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": method });
    let client = server.register_with(&body).await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&client["client_id"]), text(&client["client_secret"]))
}

fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

/// A confidential client must authenticate with its registered method.
#[tokio::test]
async fn confidential_clients_use_their_registered_method() {
    let server = Server::with_auto_consent().await;
    let verifier = verifier();
    for method in ["client_secret_basic", "client_secret_post"] {
        let (client, secret) = confidential(&server, method).await;
        let code = server.code(&client, &verifier).await;
        let bare = token_request(&client, &code, &verifier);
        let in_form = |secret| changed(&bare, "client_secret", secret);
        let send = async |authorization: Option<String>, parameters: Vec<(&str, &str)>| {
            let mut headers = vec![FORM];
            headers.extend(
                authorization
                    .as_deref()
                    .map(|value| ("authorization", value)),
            );
            server
                .send(Method::POST, "/token", &headers, &encoded(&parameters))
                .await
        };
        let right = basic(&client, &secret);
        let wrong = basic(&client, "wrong");
        let by_header = send(Some(wrong), bare.clone()).await;
        let by_form = send(None, in_form("wrong")).await;
        assert_rejected(&by_header, StatusCode::UNAUTHORIZED, "invalid_client");
        assert_rejected(&by_form, StatusCode::UNAUTHORIZED, "invalid_client");
        assert_rejected(
            &send(None, bare.clone()).await,
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        );
        let both = send(Some(right.clone()), in_form(&secret)).await;
        assert_rejected(&both, StatusCode::BAD_REQUEST, "invalid_request");
        let another = changed(&bare, "client_id", "another");
        assert_rejected(
            &send(Some(right.clone()), another).await,
            StatusCode::BAD_REQUEST,
            "invalid_request",
        );
        let bearer = send(Some("Bearer x".to_owned()), bare.clone()).await;
        assert_rejected(&bearer, StatusCode::UNAUTHORIZED, "invalid_client");

        let is_basic = method == "client_secret_basic";
        let swapped = if is_basic {
            send(None, in_form(&secret)).await
        } else {
            send(Some(right.clone()), bare.clone()).await
        };
        assert_rejected(&swapped, StatusCode::UNAUTHORIZED, "invalid_client");
        let good = if is_basic {
            send(Some(right), bare.clone()).await
        } else {
            send(None, in_form(&secret)).await
        };
        assert_eq!(good.status, StatusCode::OK, "{}", good.body);
    }
}
