//! Listening, host name checks, limits, logs and shutdown.

use std::{
    io::ErrorKind,
    sync::{Arc, LazyLock},
};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use portcullis_devidp::{DevIdp, DevIdpError, DevIdpSettings};
use portcullis_testkit::ReservedPort;
use tokio::net::TcpStream;
use tracing::Dispatch;

use crate::support::*;

/// Only loopback addresses are accepted.
#[tokio::test]
async fn other_addresses_are_rejected() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9000"] {
        let listen = address.parse().unwrap();
        let error = DevIdp::bind(DevIdpSettings {
            listen,
            ..DevIdpSettings::default()
        })
        .await
        .unwrap_err();
        assert!(
            matches!(error, DevIdpError::NotLoopback { address } if address == listen),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_error_names_a_port_in_use() {
    let server = Server::start(|_| {}).await;
    let settings = DevIdpSettings {
        listen: server.address,
        ..DevIdpSettings::default()
    };
    let error = DevIdp::bind(settings).await.unwrap_err();
    assert_eq!(error.code(), "devidp.address_in_use");
    assert!(
        error.to_string().contains(&server.address.to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn other_host_names_are_rejected() {
    let server = Server::start(|_| {}).await;
    for host in [
        "evil.example",
        "evil.example:9000",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "192.168.1.1",
        "",
    ] {
        let response = server
            .send(Method::GET, "/jwks", &[("host", host)], "")
            .await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{host}");
    }
    for host in ["localhost:1234", "127.0.0.1", "[::1]:80"] {
        let response = server
            .send(Method::GET, "/jwks", &[("host", host)], "")
            .await;
        assert_eq!(response.status, StatusCode::OK, "{host}");
    }
    let response = server
        .send(Method::GET, "http://evil.example/jwks", &[], "")
        .await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let server = Server::start(|_| {}).await;
    for path in ["/nothing", "/token/", "/user", "/authorize/../token"] {
        assert_eq!(
            server.get(path).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test]
async fn large_headers_are_rejected() {
    let server = Server::start(|_| {}).await;
    let response = server
        .send(
            Method::GET,
            "/jwks",
            &[("x-large", &"a".repeat(40_000))],
            "",
        )
        .await;
    assert_eq!(response.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn the_server_stops_on_shutdown() {
    let port = ReservedPort::new();
    let server = Server::start(|settings| settings.listen = port.address()).await;
    let _silent = TcpStream::connect(port.address()).await.unwrap();
    server.get("/jwks").await;
    server.shut_down().await;
    let refused = TcpStream::connect(port.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// J2: the log has no codes, tokens, secrets, states or verifiers. K1: registrations are logged.
#[tokio::test]
async fn the_log_has_no_secrets() {
    // With one dispatcher, `tracing` would ask only the thread that first reaches an event whether
    // it is enabled, and that of another test would answer no.
    static SECOND: LazyLock<Dispatch> =
        LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));
    LazyLock::force(&SECOND);
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let parameters = token_request(&client, &code, &verifier);
    let token = server.token(&parameters).await.json()["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    server.token(&parameters).await;
    server
        .authorize(&changed(
            &authorization_request(&client, "x"),
            "state",
            "canary-state",
        ))
        .await;

    let (client, tokens) = server.refreshable().await;
    let refresh_token = tokens["refresh_token"].as_str().unwrap().to_owned();
    let replaced = server
        .refresh(&client, &refresh_token)
        .await
        .text("refresh_token");
    server.refresh(&client, &refresh_token).await;

    let log = String::from_utf8(captured.0.lock().clone()).unwrap();
    assert!(log.contains("registered a client"), "{log}");
    assert!(log.contains("127.0.0.1:4321"), "{log}");
    assert!(log.contains("used a second time"));
    assert!(log.contains("a replaced refresh token was used again"));

    for secret in [
        &*code,
        &token,
        &refresh_token,
        &replaced,
        verifier.secret(),
        verifier.challenge(),
        "canary-state",
    ] {
        assert!(!log.contains(secret), "{secret}");
    }
}
