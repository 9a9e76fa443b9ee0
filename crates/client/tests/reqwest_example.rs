//! The reqwest example with the development authorization server: a 401, a step-up, then the
//! response.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_client::{AutoConsent, StartUrl};
use portcullis_devidp::{DevIdp, DevIdpSettings};
use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_metadata::{Issuer, Scopes};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

#[allow(dead_code, reason = "its main is not called here")]
#[path = "../examples/reqwest.rs"]
mod example;

/// I1, I6: the example signs in after a 401, requests the missing scope after a 403, and then gets
/// the report.
#[tokio::test]
async fn the_example_signs_in_and_steps_up() {
    let scopes = Scopes::parse("reports:read reports:write").unwrap();
    let settings = DevIdpSettings {
        auto_consent: true,
        scopes,
        ..DevIdpSettings::default()
    };
    let server = DevIdp::bind(settings).await.unwrap();
    let issuer = server.issuer().clone();
    tokio::spawn(server.serve(std::future::pending()));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let start = StartUrl::parse(&format!("{base}/reports")).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            respond(stream, &base, &issuer).await;
        }
    });

    let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
    let tokens = example::token_manager(start.clone(), Arc::new(AutoConsent::new(fetch))).unwrap();
    let response = example::get(&example::client().unwrap(), &tokens, start.url())
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.text().await.unwrap(), "report");

    let token = tokens.current().unwrap();
    assert!(
        token
            .scopes()
            .unwrap()
            .covers(&Scopes::parse("reports:read reports:write").unwrap())
    );
}

/// Serves the metadata, a challenge for `reports:read`, a challenge for `reports:write`, or the
/// report.
async fn respond(mut stream: TcpStream, base: &str, issuer: &Issuer) {
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    let head = String::from_utf8(received).unwrap();
    let token = head.lines().find_map(|line| {
        line.to_lowercase()
            .starts_with("authorization: bearer ")
            .then(|| &line[22..])
    });
    let challenge = |status: &str, parameters: &str| {
        let metadata =
            format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/reports\"");
        (
            status.to_owned(),
            format!("WWW-Authenticate: Bearer {metadata}, {parameters}\r\n"),
            String::new(),
        )
    };
    let (status, field, body) = if head.starts_with("GET /.well-known/") {
        let document =
            format!(r#"{{"resource":"{base}/reports","authorization_servers":["{issuer}"]}}"#);
        (
            "200 OK".to_owned(),
            "Content-Type: application/json\r\n".to_owned(),
            document,
        )
    } else {
        match token.map(claims) {
            None => challenge("401 Unauthorized", "scope=\"reports:read\""),
            Some(claims) if !claims.contains("reports:write") => challenge(
                "403 Forbidden",
                "error=\"insufficient_scope\", scope=\"reports:write\"",
            ),
            Some(_) => ("200 OK".to_owned(), String::new(), "report".to_owned()),
        }
    };
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{field}\r\n{body}"
    );
    stream.write_all(response.as_bytes()).await.unwrap();
}

/// The payload of a JWT.
fn claims(token: &str) -> String {
    String::from_utf8(
        URL_SAFE_NO_PAD
            .decode(token.split('.').nth(1).unwrap())
            .unwrap(),
    )
    .unwrap()
}
