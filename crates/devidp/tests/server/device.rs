//! The device flow (RFC 8628): approval, denial, polling and expiry.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_devidp::{ClientSettings, GrantType};
use portcullis_metadata::Secret;
use serde_json::{Value, json};

use crate::support::*;

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const INTERVAL: Duration = Duration::from_secs(5);

/// Registers a client for the device flow and returns its identifier.
async fn register(server: &Server) -> String {
    let body = json!({
        "client_name": "Terminal",
        "token_endpoint_auth_method": "none",
        "grant_types": [DEVICE_CODE, "refresh_token"],
    });
    let response = server.register_with(&body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    assert!(response.json().get("redirect_uris").is_none());
    assert!(response.json().get("response_types").is_none());
    response.text("client_id")
}

async fn start(server: &Server, client: &str) -> Value {
    let form = encoded(&[
        ("client_id", client),
        ("resource", RESOURCE),
        ("scope", "mcp:tools offline_access"),
    ]);
    let response = server
        .send(Method::POST, "/device_authorization", &[FORM], &form)
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    response.json()
}

async fn poll(server: &Server, client: &str, device_code: &str) -> Response {
    server
        .token(&[
            ("grant_type", DEVICE_CODE),
            ("client_id", client),
            ("device_code", device_code),
        ])
        .await
}

fn text<'a>(started: &'a Value, member: &str) -> &'a str {
    started[member].as_str().unwrap()
}

/// K1: the user enters the code, compares it and approves; the client gets tokens for the resource,
/// once.
#[tokio::test]
async fn a_device_is_approved_on_the_page() {
    let server = Server::start(|_| {}).await;
    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert_eq!(
        metadata["device_authorization_endpoint"],
        format!("{}/device_authorization", server.issuer)
    );
    let client = register(&server).await;
    let started = start(&server, &client).await;
    assert_eq!(started["expires_in"], 600);
    assert_eq!(started["interval"], 5);
    assert_eq!(
        started["verification_uri"],
        format!("{}/device", server.issuer)
    );

    let user_code = text(&started, "user_code");
    let device_code = text(&started, "device_code");

    let pending = poll(&server, &client, device_code).await;
    assert_eq!(pending.status, StatusCode::BAD_REQUEST);
    assert_eq!(&*pending.error(), "authorization_pending");

    let entry = server.get("/device").await;
    assert!(entry.body.contains("action=\"/authorize/device\""));
    assert!(entry.body.contains("name=\"user_code\""));
    let typed = user_code.to_lowercase().replace('-', "");
    let page = server
        .get(&format!("/authorize/device?user_code={typed}"))
        .await;
    assert_eq!(page.status, StatusCode::OK);

    for shown in [
        user_code,
        "Terminal",
        "mcp:tools",
        RESOURCE,
        "Allow only if your device shows this code.",
    ] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let submitted = submit(&server, &page, "allow").await;
    assert_eq!(submitted.status, StatusCode::OK, "{}", submitted.body);
    assert!(submitted.body.contains("Your device is connected"));
    assert!(submitted.location().is_none());

    server.clock.advance(INTERVAL);
    let tokens = poll(&server, &client, device_code).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.body);
    let token = claims(&tokens.text("access_token"));
    assert_eq!(token["aud"], json!(RESOURCE));
    assert_eq!(token["sub"], "zoe");
    assert_eq!(token["client_id"], json!(client));
    assert_eq!(
        server
            .refresh(&client, &tokens.text("refresh_token"))
            .await
            .status,
        StatusCode::OK
    );

    server.clock.advance(INTERVAL);
    assert_eq!(
        poll(&server, &client, device_code).await.error(),
        "invalid_grant",
        "a device code is used once"
    );
    let again = server
        .get(&format!("/authorize/device?user_code={typed}"))
        .await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST, "so is a user code");
}

async fn submit(server: &Server, page: &Response, decision: &str) -> Response {
    let origin = format!("http://{}", server.address);
    let ticket = page.ticket();
    let cookie = page.cookie();
    let form = encoded(&[("ticket", &ticket), ("user", "zoe"), ("decision", decision)]);
    let headers = [FORM, ("origin", &*origin), ("cookie", &*cookie)];
    server
        .send(Method::POST, "/authorize/consent", &headers, &form)
        .await
}

/// K1: a submission needs the origin, the browser and the ticket, as on the consent page.
#[tokio::test]
async fn other_pages_and_browsers_cannot_approve() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let started = start(&server, &client).await;
    let page = server
        .get(&format!(
            "/authorize/device?user_code={}",
            text(&started, "user_code")
        ))
        .await;
    let form = encoded(&[
        ("ticket", &page.ticket()),
        ("user", "zoe"),
        ("decision", "allow"),
    ]);
    let origin = format!("http://{}", server.address);
    let cookie = page.cookie();
    for headers in [
        vec![FORM, ("cookie", &*cookie)],
        vec![
            FORM,
            ("cookie", &*cookie),
            ("origin", "https://evil.example"),
        ],
        vec![FORM, ("origin", &*origin)],
        vec![
            FORM,
            ("origin", &*origin),
            ("cookie", "portcullis-consent=AAAAAAAAAAAAAAAAAAAAAA"),
        ],
    ] {
        let response = server
            .send(Method::POST, "/authorize/consent", &headers, &form)
            .await;
        assert!(response.status.is_client_error(), "{headers:?}");
    }
    assert_eq!(
        poll(&server, &client, text(&started, "device_code"))
            .await
            .error(),
        "authorization_pending"
    );
}

/// K1: a denied device gets `access_denied`. Then its code is unknown.
#[tokio::test]
async fn a_device_is_denied() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let started = start(&server, &client).await;
    let page = server
        .get(&format!(
            "/authorize/device?user_code={}",
            text(&started, "user_code")
        ))
        .await;
    assert!(
        submit(&server, &page, "deny")
            .await
            .body
            .contains("The request was denied")
    );
    let denied = poll(&server, &client, text(&started, "device_code")).await;
    assert_eq!(denied.status, StatusCode::BAD_REQUEST);
    assert_eq!(&*denied.error(), "access_denied");
    server.clock.advance(INTERVAL);
    assert_eq!(
        poll(&server, &client, text(&started, "device_code"))
            .await
            .error(),
        "invalid_grant"
    );
}

/// K1: each poll that comes too early adds 5 s to the interval, also for approved codes.
#[tokio::test]
async fn clients_that_poll_too_often_slow_down() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let started = start(&server, &client).await;
    let device_code = text(&started, "device_code");
    assert_eq!(
        poll(&server, &client, device_code).await.error(),
        "authorization_pending"
    );
    assert_eq!(
        poll(&server, &client, device_code).await.error(),
        "slow_down"
    );
    server.clock.advance(INTERVAL);
    assert_eq!(
        poll(&server, &client, device_code).await.error(),
        "slow_down",
        "the interval is 10 s now"
    );
    assert!(
        server
            .control
            .approve_device(text(&started, "user_code"), "alice")
    );
    server.clock.advance(2 * INTERVAL);
    assert_eq!(
        poll(&server, &client, device_code).await.error(),
        "slow_down",
        "and 15 s now"
    );
    server.clock.advance(4 * INTERVAL);
    assert_eq!(
        poll(&server, &client, device_code).await.status,
        StatusCode::OK
    );
}

/// K1: both codes expire after ten minutes.
#[tokio::test]
async fn codes_expire() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let started = start(&server, &client).await;
    server.clock.advance(Duration::from_secs(600));
    assert_eq!(
        poll(&server, &client, text(&started, "device_code"))
            .await
            .error(),
        "expired_token"
    );
    let page = server
        .get(&format!(
            "/authorize/device?user_code={}",
            text(&started, "user_code")
        ))
        .await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(
        !server
            .control
            .approve_device(text(&started, "user_code"), "alice")
    );
}

/// K1: other clients, other codes and clients without the grant type get nothing.
#[tokio::test]
async fn other_requests_are_rejected() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let other = register(&server).await;
    let started = start(&server, &client).await;
    server
        .control
        .approve_device(text(&started, "user_code"), "alice");
    assert_eq!(
        poll(&server, &other, text(&started, "device_code"))
            .await
            .error(),
        "invalid_grant"
    );
    assert_eq!(
        poll(&server, &client, &"a".repeat(44)).await.error(),
        "invalid_grant"
    );
    assert_eq!(poll(&server, &client, "").await.error(), "invalid_request");
    assert_eq!(
        poll(&server, &client, text(&started, "device_code"))
            .await
            .status,
        StatusCode::OK
    );

    let codes_only = server.register().await;
    let send = async |form: &[(&str, &str)]| {
        server
            .send(
                Method::POST,
                "/device_authorization",
                &[FORM],
                &encoded(form),
            )
            .await
            .error()
    };
    assert_eq!(
        send(&[("client_id", &codes_only), ("resource", RESOURCE)]).await,
        "unauthorized_client"
    );
    assert_eq!(
        send(&[("client_id", "unknown-client"), ("resource", RESOURCE)]).await,
        "invalid_client"
    );
    assert_eq!(send(&[("client_id", &client)]).await, "invalid_target");
    assert_eq!(
        send(&[
            ("client_id", &client),
            ("resource", RESOURCE),
            ("scope", "other")
        ])
        .await,
        "invalid_scope"
    );
}

/// K1: user codes cannot be guessed: after 100 wrong ones in a minute, all are rejected.
#[tokio::test]
async fn wrong_user_codes_are_limited() {
    let server = Server::start(|_| {}).await;
    let client = register(&server).await;
    let entry = server.get("/authorize/device").await;
    assert_eq!(entry.status, StatusCode::OK, "no code is not a wrong one");
    for _ in 0..100 {
        assert_eq!(
            server
                .get("/authorize/device?user_code=BCDF-GHJK")
                .await
                .status,
            StatusCode::BAD_REQUEST
        );
    }
    assert_eq!(
        server
            .get("/authorize/device?user_code=BCDF-GHJK")
            .await
            .status,
        StatusCode::TOO_MANY_REQUESTS
    );

    let started = start(&server, &client).await;
    let right = server
        .get(&format!(
            "/authorize/device?user_code={}",
            text(&started, "user_code")
        ))
        .await;
    assert_eq!(
        right.status,
        StatusCode::TOO_MANY_REQUESTS,
        "the right code is rejected too, so that it cannot be found by guessing"
    );

    server.clock.advance(Duration::from_secs(60));
    let right = server
        .get(&format!(
            "/authorize/device?user_code={}",
            text(&started, "user_code")
        ))
        .await;
    assert_eq!(right.status, StatusCode::OK);
    let markup = server.get("/authorize/device?user_code=%3Cscript%3E").await;
    assert_eq!(markup.status, StatusCode::BAD_REQUEST);
    assert!(!markup.body.contains("<script>"));
}

/// K1: with automatic consent, the first poll succeeds; a confidential client authenticates for
/// both requests.
#[tokio::test]
async fn automatic_consent_approves_devices() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        let mut client = ClientSettings::with_secret("robot", Secret::new("hush"));
        client.grant_types = vec![GrantType::DeviceCode];
        settings.clients = vec![client];
    })
    .await;
    let basic = ("authorization", "Basic cm9ib3Q6aHVzaA==");
    let form = encoded(&[("resource", RESOURCE)]);
    let rejected = server
        .send(Method::POST, "/device_authorization", &[FORM], &form)
        .await;
    assert_eq!(rejected.error(), "invalid_client");

    let started = server
        .send(Method::POST, "/device_authorization", &[FORM, basic], &form)
        .await
        .json();
    let form = encoded(&[
        ("grant_type", DEVICE_CODE),
        ("device_code", text(&started, "device_code")),
    ]);
    let tokens = server
        .send(Method::POST, "/token", &[FORM, basic], &form)
        .await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.body);
    assert_eq!(claims(&tokens.text("access_token"))["sub"], "alice");
    assert!(tokens.json().get("refresh_token").is_none());
}

/// K1: the admin API approves and denies device authorizations.
#[tokio::test]
async fn the_admin_api_decides_device_authorizations() {
    let server = Server::start(|settings| settings.admin = true).await;
    let client = register(&server).await;
    for (decision, expected) in [("allow", ""), ("deny", "access_denied")] {
        let started = start(&server, &client).await;
        let body =
            json!({ "user_code": started["user_code"], "decision": decision, "user": "zoe" })
                .to_string();
        let response = server
            .send(Method::POST, "/admin/device", &[JSON], &body)
            .await;
        assert_eq!(response.status, StatusCode::NO_CONTENT);
        let again = server
            .send(Method::POST, "/admin/device", &[JSON], &body)
            .await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        let response = poll(&server, &client, text(&started, "device_code")).await;
        assert_eq!(response.error(), expected);
    }
    for bad in ["{}", r#"{"user_code":"a","decision":"maybe"}"#] {
        let response = server
            .send(Method::POST, "/admin/device", &[JSON], bad)
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
    }
}
