//! The modes of client authentication reject what the imitated servers reject.

use http::{Method, StatusCode};
use portcullis_devidp::ClientAuthenticationMode;
use serde_json::{Value, json};

use crate::support::*;

/// Starts a server with automatic consent in this mode.
async fn start(mode: ClientAuthenticationMode) -> Server {
    Server::start(|settings| {
        settings.auto_consent = true;
        settings.client_authentication_mode = mode;
    })
    .await
}

/// Registers a client with this method.
async fn register(server: &Server, method: Option<&str>) -> Value {
    let mut body = json!({ "redirect_uris": [REDIRECT] });
    if let Some(method) = method {
        body["token_endpoint_auth_method"] = json!(method);
    }
    server.register_with(&body).await.json()
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy)]
enum Presented {
    /// With the secret in the `Authorization` header.
    Basic,
    /// With the secret in the header, and `client_id` in the body.
    BasicWithId,
    /// With the secret and `client_id` in the body.
    Post,
    /// With `client_id` in the body only.
    IdOnly,
}

/// Exchanges a code, and authenticates in this way.
async fn exchange(server: &Server, client: &Value, presented: Presented) -> Response {
    let client_id = client["client_id"].as_str().unwrap();
    let secret = client["client_secret"].as_str().unwrap_or_default();
    let verifier = verifier();
    let code = server.code(client_id, &verifier).await;
    let request = token_request(client_id, &code, &verifier);
    let has_id = !matches!(presented, Presented::Basic);
    let mut request = changed(&request, "client_id", has_id.then_some(client_id));
    let mut headers = vec![FORM];
    let credential = basic_credential(client_id, secret);
    match presented {
        Presented::Basic | Presented::BasicWithId => headers.push(("authorization", &credential)),
        Presented::Post => request.push(("client_secret", secret)),
        Presented::IdOnly => {}
    }
    server
        .send(Method::POST, "/token", &headers, &encoded(&request))
        .await
}

fn basic_credential(id: &str, secret: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

/// K1: like the Python SDK: registrations get `client_secret_post`, and every request needs
/// `client_id` in its body.
#[tokio::test]
async fn the_mode_of_the_python_sdk() {
    let server = start(ClientAuthenticationMode::PythonSdk).await;
    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert_eq!(
        metadata["token_endpoint_auth_methods_supported"],
        json!(["client_secret_post", "client_secret_basic"])
    );
    for requested in [
        None,
        Some("client_secret_basic"),
        Some("client_secret_post"),
    ] {
        let client = register(&server, requested).await;
        assert_eq!(
            client["token_endpoint_auth_method"], "client_secret_post",
            "{requested:?}"
        );
        assert_eq!(
            exchange(&server, &client, Presented::Post).await.status,
            StatusCode::OK
        );
        let basic = exchange(&server, &client, Presented::Basic).await;
        assert_eq!(basic.status, StatusCode::UNAUTHORIZED);
        assert_eq!(&*basic.error(), "invalid_client");
        assert_eq!(basic.text("error_description"), "Missing client_id");
        assert_eq!(
            exchange(&server, &client, Presented::BasicWithId)
                .await
                .error(),
            "invalid_client",
            "not its method"
        );
    }
    let public = register(&server, Some("none")).await;
    assert_eq!(public["token_endpoint_auth_method"], "none");
    assert_eq!(
        exchange(&server, &public, Presented::IdOnly).await.status,
        StatusCode::OK
    );
}

/// K1: a server that lists a method and rejects it accepts the other one.
#[tokio::test]
async fn one_listed_method_is_rejected() {
    for (mode, rejected, accepted) in [
        (
            ClientAuthenticationMode::RejectBasic,
            Presented::BasicWithId,
            Presented::Post,
        ),
        (
            ClientAuthenticationMode::RejectPost,
            Presented::Post,
            Presented::BasicWithId,
        ),
    ] {
        let server = start(mode).await;
        for method in ["client_secret_basic", "client_secret_post"] {
            let client = register(&server, Some(method)).await;
            assert_eq!(client["token_endpoint_auth_method"], method);
            let rejected = exchange(&server, &client, rejected).await;
            assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
            assert_eq!(&*rejected.error(), "invalid_client");
            let accepted = exchange(&server, &client, accepted).await;
            assert_eq!(accepted.status, StatusCode::OK, "{}", accepted.body);
        }
    }
}

/// K1: a strict server rejects `client_id` in the body beside a Basic credential.
#[tokio::test]
async fn basic_with_a_client_id_in_the_body_is_rejected() {
    let server = start(ClientAuthenticationMode::BasicWithoutBody).await;
    let client = register(&server, Some("client_secret_basic")).await;
    assert_eq!(
        exchange(&server, &client, Presented::BasicWithId)
            .await
            .error(),
        "invalid_client"
    );
    assert_eq!(
        exchange(&server, &client, Presented::Basic).await.status,
        StatusCode::OK
    );
    assert_eq!(
        exchange(&server, &client, Presented::Post).await.status,
        StatusCode::OK
    );
}
