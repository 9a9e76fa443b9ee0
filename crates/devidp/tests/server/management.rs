//! Management of registrations (RFC 7592), and servers that forget clients.

use http::{Method, StatusCode};
use portcullis_devidp::ClientSettings;
use portcullis_metadata::Secret;
use serde_json::{Value, json};

use crate::support::*;

/// Registers a confidential client and returns the response.
async fn register(server: &Server) -> Value {
    let body = json!({
        "client_name": "Notes",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "client_secret_post",
        "grant_types": ["authorization_code", "refresh_token"],
    });
    let response = server.register_with(&body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    response.json()
}

/// The path of a client's registration.
fn path(server: &Server, client: &Value) -> String {
    let uri = client["registration_client_uri"].as_str().unwrap();
    uri.strip_prefix(&format!("http://{}", server.address))
        .unwrap()
        .to_owned()
}

async fn manage(
    server: &Server,
    method: Method,
    path: &str,
    token: &Value,
    body: &Value,
) -> Response {
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let headers = [JSON, ("authorization", &*bearer)];
    let body = if method == Method::PUT {
        body.to_string()
    } else {
        String::new()
    };
    server.send(method, path, &headers, &body).await
}

/// K1: a client reads its registration with its registration access token.
#[tokio::test]
async fn a_registration_is_read() {
    for issuer_path in ["", "/realms/dev"] {
        let server = Server::start(|settings| settings.issuer_path = issuer_path.to_owned()).await;
        let registered = server
            .send(
                Method::POST,
                &format!("{issuer_path}/register"),
                &[JSON],
                &json!({"redirect_uris": [REDIRECT]}).to_string(),
            )
            .await
            .json();
        let path = path(&server, &registered);
        assert_eq!(
            path,
            format!(
                "{issuer_path}/register/{}",
                registered["client_id"].as_str().unwrap()
            )
        );
        let read = manage(
            &server,
            Method::GET,
            &path,
            &registered["registration_access_token"],
            &json!(null),
        )
        .await;
        assert_eq!(read.status, StatusCode::OK);
        assert_eq!(read.header("cache-control"), Some("no-store"));
        assert_eq!(read.json(), registered);
    }
}

/// K1: without the token, with another one, and for unknown clients there is nothing but 401.
#[tokio::test]
async fn other_callers_are_rejected() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let other = register(&server).await;
    let path = path(&server, &client);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let none = server.send(method.clone(), &path, &[JSON], "{}").await;
        assert_eq!(none.status, StatusCode::UNAUTHORIZED, "{method}");
        assert_eq!(&*none.error(), "invalid_token", "{method}");
        assert_eq!(
            none.header("www-authenticate"),
            Some("Bearer realm=\"portcullis-devidp\""),
            "{method}"
        );
        let wrong = manage(
            &server,
            method.clone(),
            &path,
            &other["registration_access_token"],
            &json!({}),
        )
        .await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED, "{method}");
        let challenge = "Bearer realm=\"portcullis-devidp\", error=\"invalid_token\"";
        assert_eq!(
            wrong.header("www-authenticate"),
            Some(challenge),
            "{method}"
        );
        let token = &client["registration_access_token"];
        let unknown = manage(
            &server,
            method,
            "/register/unknown-client",
            token,
            &json!({}),
        )
        .await;
        assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(
        server.send(Method::POST, &path, &[JSON], "{}").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );

    let configured = Server::start(|settings| {
        settings.clients = vec![ClientSettings::public("desktop")];
    })
    .await;
    let response = manage(
        &configured,
        Method::GET,
        "/register/desktop",
        &json!("a"),
        &json!(null),
    )
    .await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
}

/// K1: an update replaces the metadata and the token, and keeps the identifier and the secret.
#[tokio::test]
async fn a_registration_is_updated() {
    let server = Server::with_auto_consent().await;
    let client = register(&server).await;
    let path = path(&server, &client);
    let token = &client["registration_access_token"];
    let redirect = "http://127.0.0.1:4321/other";
    let body = json!({
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "redirect_uris": [redirect],
        "token_endpoint_auth_method": "client_secret_post",
    });
    let response = manage(&server, Method::PUT, &path, token, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);

    let updated = response.json();
    assert_eq!(updated["redirect_uris"], json!([redirect]));
    assert!(
        updated.get("client_name").is_none(),
        "an omitted member is removed"
    );
    assert_eq!(
        updated["grant_types"],
        json!(["authorization_code"]),
        "or gets its default"
    );

    for same in [
        "client_id",
        "client_secret",
        "client_id_issued_at",
        "registration_client_uri",
    ] {
        assert_eq!(updated[same], client[same], "{same}");
    }
    assert_ne!(updated["registration_access_token"], *token);

    let stale = manage(&server, Method::GET, &path, token, &json!(null)).await;
    assert_eq!(
        stale.status,
        StatusCode::UNAUTHORIZED,
        "the old token is replaced"
    );
    let read = manage(
        &server,
        Method::GET,
        &path,
        &updated["registration_access_token"],
        &json!(null),
    )
    .await;
    assert_eq!(read.json(), updated);

    let id = client["client_id"].as_str().unwrap();
    let verifier = verifier();
    let request = changed(
        &authorization_request(id, verifier.challenge()),
        "redirect_uri",
        redirect,
    );
    assert!(
        server
            .authorize(&request)
            .await
            .redirect_parameter("code")
            .is_some()
    );

    let old = server
        .authorize(&authorization_request(id, verifier.challenge()))
        .await;
    assert_eq!(old.status, StatusCode::BAD_REQUEST);
}

/// K1: an update that RFC 7592 forbids changes nothing.
#[tokio::test]
async fn invalid_updates_are_rejected() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let path = path(&server, &client);
    let token = &client["registration_access_token"];
    for (member, value) in [
        ("client_id", json!(null)),
        ("client_id", json!("another")),
        ("client_secret", json!("chosen")),
        ("client_secret", json!(1)),
        ("registration_access_token", token.clone()),
        ("registration_client_uri", json!("https://client.example/")),
        ("client_id_issued_at", json!(1)),
        ("client_secret_expires_at", json!(0)),
        ("redirect_uris", json!(["http://client.example/"])),
        ("grant_types", json!(["client_credentials"])),
    ] {
        let mut body = json!({ "client_id": client["client_id"], "redirect_uris": [REDIRECT] });
        body[member] = value;
        body.as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        let response = manage(&server, Method::PUT, &path, token, &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
    }
    assert_eq!(
        manage(&server, Method::GET, &path, token, &json!(null))
            .await
            .json(),
        client
    );
}

/// Whether the access token in a token response is active for a resource.
async fn is_active(server: &Server, tokens: &Value) -> bool {
    let token = tokens["access_token"].as_str().unwrap();
    let form = encoded(&[
        ("token", token),
        ("client_id", "resource"),
        ("client_secret", "hush"),
    ]);
    server
        .send(Method::POST, "/introspect", &[FORM], &form)
        .await
        .json()["active"]
        == true
}

/// Starts a server with automatic consent, admin endpoints, and a resource that introspects.
async fn start_with_resource() -> Server {
    Server::start(|settings| {
        (settings.auto_consent, settings.admin) = (true, true);
        let resource = ClientSettings::with_secret("resource", Secret::new("hush"));
        settings.clients = vec![ClientSettings {
            may_introspect: true,
            ..resource
        }];
    })
    .await
}

/// K1: a deleted client is unknown, and its sessions with refresh tokens end.
#[tokio::test]
async fn a_registration_is_deleted() {
    let server = start_with_resource().await;
    let body = json!({
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    });
    let client = server.register_with(&body).await.json();
    let id = client["client_id"].as_str().unwrap();
    let verifier = verifier();
    let request = changed(
        &authorization_request(id, verifier.challenge()),
        "scope",
        "mcp:tools offline_access",
    );
    let code = async || {
        server
            .authorize(&request)
            .await
            .redirect_parameter("code")
            .unwrap()
    };
    let tokens = server
        .token(&token_request(id, &code().await, &verifier))
        .await
        .json();
    assert!(is_active(&server, &tokens).await);
    let unused = code().await;

    let path = path(&server, &client);
    let deleted = manage(
        &server,
        Method::DELETE,
        &path,
        &client["registration_access_token"],
        &json!(null),
    )
    .await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(&*deleted.body, "");
    assert_eq!(
        server
            .token(&token_request(id, &unused, &verifier))
            .await
            .error(),
        "invalid_client"
    );
    assert_eq!(
        server
            .refresh(id, tokens["refresh_token"].as_str().unwrap())
            .await
            .error(),
        "invalid_client"
    );
    assert!(!is_active(&server, &tokens).await);

    let again = manage(
        &server,
        Method::DELETE,
        &path,
        &client["registration_access_token"],
        &json!(null),
    )
    .await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
}

/// K1: a forgotten client gets an error page and is never redirected, and its sessions end.
#[tokio::test]
async fn a_forgotten_client_sees_an_error_page() {
    let server = start_with_resource().await;
    let (id, tokens) = server.refreshable().await;
    let (_, others) = server.refreshable().await;
    let other = server.register().await;
    assert!(server.control.forget_client(&id));
    assert!(!server.control.forget_client(&id));

    let verifier = verifier();
    let page = server
        .authorize(&authorization_request(&id, verifier.challenge()))
        .await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.location().is_none());
    assert!(page.body.contains("not registered here"));

    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(
        server.refresh(&id, refresh_token).await.error(),
        "invalid_client"
    );
    assert!(!is_active(&server, &tokens).await);
    assert!(is_active(&server, &others).await);

    let forget = async |body: &str| {
        server
            .send(Method::POST, "/admin/forget", &[JSON], body)
            .await
            .status
    };
    assert_eq!(
        forget(&json!({ "client_id": id }).to_string()).await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(forget("{\"client\":1}").await, StatusCode::BAD_REQUEST);
    assert!(
        server
            .authorize(&authorization_request(&other, verifier.challenge()))
            .await
            .location()
            .is_some()
    );
    assert_eq!(forget("{}").await, StatusCode::NO_CONTENT);
    assert!(
        server
            .authorize(&authorization_request(&other, verifier.challenge()))
            .await
            .location()
            .is_none()
    );
}
