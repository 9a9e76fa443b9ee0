//! Injected faults apply in order, and only a program can control them.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portcullis_devidp::{DevIdp, DevIdpSettings, Fault, FaultError, FaultKind, FaultPoint};
use tokio::net::TcpStream;

use crate::support::*;

fn fault(at: FaultPoint, kind: FaultKind, times: u32) -> Fault {
    Fault {
        at,
        kind,
        times: NonZeroU32::new(times),
    }
}

/// Sends a request and returns whether there was a response.
async fn has_response(server: &Server, path: &str) -> bool {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(path).header("host", server.address.to_string());
    sender
        .send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap())
        .await
        .is_ok()
}

/// K1: faults apply in order, for the given number of requests, and only at their point.
#[tokio::test]
async fn faults_apply_in_order_and_run_out() {
    let server = Server::start(|settings| {
        settings.faults = vec![fault(
            FaultPoint::Jwks,
            FaultKind::Status(StatusCode::SERVICE_UNAVAILABLE),
            2,
        )];
    })
    .await;
    server
        .control
        .inject(fault(FaultPoint::Jwks, FaultKind::Garbage, 1))
        .unwrap();
    let metadata = "/.well-known/oauth-authorization-server";
    assert_eq!(server.get(metadata).await.status, StatusCode::OK);

    for _ in 0..2 {
        assert_eq!(
            server.get("/jwks").await.status,
            StatusCode::SERVICE_UNAVAILABLE
        );
    }
    let garbage = server.get("/jwks").await;
    assert_eq!(garbage.status, StatusCode::OK);
    assert_eq!(garbage.header("content-type"), Some("application/json"));
    assert!(serde_json::from_str::<serde_json::Value>(&garbage.body).is_err());
    assert!(server.get("/jwks").await.json()["keys"].is_array());

    // Without a number, the fault applies until it is cleared.
    let forever = Fault {
        times: None,
        ..fault(
            FaultPoint::Token,
            FaultKind::Status(StatusCode::IM_A_TEAPOT),
            1,
        )
    };
    server.control.inject(forever).unwrap();
    for _ in 0..3 {
        assert_eq!(server.token(&[]).await.status, StatusCode::IM_A_TEAPOT);
    }
    server.control.clear_faults();
    assert_eq!(server.token(&[]).await.error(), "invalid_request");
}

/// K1: a dropped connection has no response, and a delayed one has its normal response.
#[tokio::test]
async fn responses_are_dropped_and_delayed() {
    let server = Server::start(|_| {}).await;
    server
        .control
        .inject(fault(FaultPoint::Jwks, FaultKind::Drop, 1))
        .unwrap();
    assert!(!has_response(&server, "/jwks").await);
    assert!(has_response(&server, "/jwks").await);
    let delay = Duration::from_millis(30);
    server
        .control
        .inject(fault(FaultPoint::Jwks, FaultKind::Delay(delay), 1))
        .unwrap();
    let start = Instant::now();
    assert!(server.get("/jwks").await.json()["keys"].is_array());
    assert!(start.elapsed() >= delay);
}

/// K1: a hanging request ends when the server stops.
#[tokio::test]
async fn a_hanging_request_ends_with_the_server() {
    let server = Server::start(|_| {}).await;
    server
        .control
        .inject(fault(FaultPoint::Jwks, FaultKind::Hang, 1))
        .unwrap();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("/jwks").header("host", server.address.to_string());
    let hanging =
        tokio::spawn(sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()));

    // The next request gets a response, so the fault applies only to the first one.
    let applied = async {
        while server.control.pending_faults() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), applied)
        .await
        .expect("the fault applies");
    assert!(has_response(&server, "/jwks").await);
    assert!(!hanging.is_finished());

    server.shut_down().await;
    assert!(hanging.await.unwrap().is_err());
}

/// K1: the issuer can be replaced in the metadata and the redirect, and nowhere else.
#[tokio::test]
async fn the_issuer_can_be_replaced() {
    let server = Server::with_auto_consent().await;
    for at in [FaultPoint::Metadata, FaultPoint::Authorize] {
        server
            .control
            .inject(fault(at, FaultKind::WrongIssuer, 1))
            .unwrap();
    }
    let wrong = "https://wrong-issuer.example";
    let metadata = server.get("/.well-known/openid-configuration").await.json();
    assert_eq!(metadata["issuer"], wrong);
    assert_eq!(
        metadata["token_endpoint"],
        format!("{}/token", server.issuer)
    );

    let client = server.register().await;
    let verifier = verifier();
    let parameters = authorization_request(&client, verifier.challenge());
    let struck = server.authorize(&parameters).await;
    assert_eq!(struck.redirect_parameter("iss").as_deref(), Some(wrong));
    assert_eq!(
        struck.redirect_parameter("state").as_deref(),
        Some("a state & more")
    );
    assert_eq!(
        server
            .authorize(&parameters)
            .await
            .redirect_parameter("iss")
            .as_deref(),
        Some(&*server.issuer)
    );
    assert_eq!(
        server.get("/.well-known/openid-configuration").await.json()["issuer"],
        server.issuer
    );
}

/// An invalid fault is rejected, also at start, and at most 100 faults are pending.
#[tokio::test]
async fn invalid_faults_are_rejected() {
    let server = Server::start(|_| {}).await;
    for (fault, problem) in [
        (
            fault(FaultPoint::Jwks, FaultKind::Status(StatusCode::OK), 1),
            FaultError::Status,
        ),
        (
            fault(
                FaultPoint::Jwks,
                FaultKind::Delay(Duration::from_secs(61)),
                1,
            ),
            FaultError::Delay,
        ),
        (
            fault(FaultPoint::Token, FaultKind::WrongIssuer, 1),
            FaultError::NoIssuer,
        ),
    ] {
        assert_eq!(server.control.inject(fault.clone()), Err(problem));
        let settings = DevIdpSettings {
            faults: vec![fault],
            ..DevIdpSettings::default()
        };
        assert_eq!(
            DevIdp::bind(settings).await.unwrap_err().code(),
            "devidp.fault"
        );
    }
    let good = fault(FaultPoint::Jwks, FaultKind::Garbage, 1);
    for _ in 0..100 {
        server.control.inject(good.clone()).unwrap();
    }
    assert_eq!(server.control.inject(good), Err(FaultError::TooMany));
}

/// K1: a program on the same machine can rotate keys and script faults over HTTP.
#[tokio::test]
async fn a_program_controls_a_running_server() {
    let server = Server::start(|settings| settings.admin = true).await;
    let kids = async || {
        let keys = server.get("/jwks").await.json()["keys"]
            .as_array()
            .unwrap()
            .clone();
        keys.into_iter()
            .map(|key| key["kid"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = kids().await;
    let response = server
        .send(Method::POST, "/admin/rotate", &[JSON], "{}")
        .await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);

    let second = kids().await;
    assert_eq!(second[2..], first);
    let response = server
        .send(
            Method::POST,
            "/admin/rotate",
            &[JSON],
            r#"{"old_keys":"withdraw"}"#,
        )
        .await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);

    let third = kids().await;
    assert_eq!(third.len(), 2);
    assert!(third.iter().all(|kid| !second.contains(kid)));

    let fault = r#"{"at":"token","kind":"status","status":503,"times":1}"#;
    let response = server
        .send(Method::POST, "/admin/faults", &[JSON], fault)
        .await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);
    assert_eq!(
        server.token(&[]).await.status,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(server.token(&[]).await.status, StatusCode::BAD_REQUEST);

    let forever = r#"{"at":"jwks","kind":"garbage"}"#;
    server
        .send(Method::POST, "/admin/faults", &[JSON], forever)
        .await;
    assert_eq!(
        server
            .send(Method::DELETE, "/admin/faults", &[], "")
            .await
            .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(kids().await, third);

    for bad in [
        "",
        "[]",
        r#"{"at":"token"}"#,
        r#"{"at":"consent","kind":"drop"}"#,
        r#"{"at":"token","kind":"explode"}"#,
        r#"{"at":"token","kind":"status"}"#,
        r#"{"at":"token","kind":"status","status":200}"#,
        r#"{"at":"token","kind":"status","status":99}"#,
        r#"{"at":"token","kind":"drop","status":500}"#,
        r#"{"at":"token","kind":"drop","times":0}"#,
        r#"{"at":"token","kind":"delay","delay_ms":60001}"#,
        r#"{"at":"token","kind":"drop","more":1}"#,
    ] {
        let response = server
            .send(Method::POST, "/admin/faults", &[JSON], bad)
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{bad}");
        assert!(!response.body.is_empty());
    }
    for bad in ["", r#"{"old_keys":"burn"}"#] {
        let response = server
            .send(Method::POST, "/admin/rotate", &[JSON], bad)
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    assert_eq!(kids().await, third);
}

/// K1: requests from browsers are rejected, and the endpoints do not exist unless they are enabled.
#[tokio::test]
async fn browsers_cannot_control_the_server() {
    let server = Server::start(|settings| settings.admin = true).await;
    let origin = format!("http://{}", server.address);
    let before = server.get("/jwks").await.body;
    for browser in [
        ("origin", &*origin),
        ("origin", "null"),
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "cors"),
    ] {
        let response = server
            .send(Method::POST, "/admin/rotate", &[JSON, browser], "{}")
            .await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{browser:?}");
        let response = server
            .send(Method::DELETE, "/admin/faults", &[browser], "")
            .await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{browser:?}");
    }
    for simple in [FORM, ("content-type", "text/plain")] {
        let response = server
            .send(Method::POST, "/admin/rotate", &[simple], "{}")
            .await;
        assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let preflight = server
        .send(
            Method::OPTIONS,
            "/admin/rotate",
            &[("origin", "https://client.example")],
            "",
        )
        .await;
    assert_eq!(preflight.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(preflight.header("access-control-allow-origin").is_none());

    let rebound = server
        .send(
            Method::POST,
            "/admin/rotate",
            &[JSON, ("host", "evil.example")],
            "{}",
        )
        .await;
    assert_eq!(rebound.status, StatusCode::FORBIDDEN);
    assert_eq!(server.get("/jwks").await.body, before);

    let without = Server::start(|_| {}).await;
    for path in ["/admin/rotate", "/admin/faults"] {
        assert_eq!(
            without.send(Method::POST, path, &[JSON], "{}").await.status,
            StatusCode::NOT_FOUND
        );
    }
}
