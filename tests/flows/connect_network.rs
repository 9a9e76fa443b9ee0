//! `portcullis connect` with servers behind load balancers and proxies, and with many and large
//! messages.

use std::{collections::HashSet, io::Write as _};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use portcullis_scenarios::{Portcullis, Upstream};
use serde_json::{Value, json};

use crate::connect::{Bridge, assert_silent_success};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A server redirects to its path with a slash, as Starlette does, compresses its responses, and is
/// behind a load balancer that requires its cookie. The bridge follows with the same body, returns
/// the cookie and decompresses the response.
#[tokio::test]
async fn a_redirect_a_cookie_and_a_compressed_response() {
    let upstream = Upstream::scripted(|request| {
        if request.target == "/mcp" {
            let cookie = ("set-cookie", "AWSALB=instance-1; Path=/; HttpOnly");
            return Some(Upstream::response(
                307,
                &[("location", "/mcp/"), cookie],
                "",
            ));
        }
        if request.header("cookie") != Some("AWSALB=instance-1") {
            return Some(Upstream::response(400, &[], "another instance"));
        }
        if request.message_method().as_deref() != Some("echo")
            || request.header("accept-encoding") != Some("gzip")
        {
            return None;
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        let response =
            json!({ "jsonrpc": "2.0", "id": message["id"], "result": message["params"] });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        write!(encoder, "data: {response}\n\n").unwrap();
        let headers = [
            ("content-type", "text/event-stream"),
            ("content-encoding", "gzip"),
        ];
        Some(Upstream::response(200, &headers, encoder.finish().unwrap()))
    })
    .await;
    let token = [("PORTCULLIS_TOKEN", "hush")];
    let mut bridge = Bridge::start(&format!("{}/mcp", upstream.origin()), &[], &token);
    assert!(bridge.initialize().await["result"].is_object());

    let text = "x".repeat(100_000);
    let response = bridge.request(1, "echo", json!({ "text": text })).await;
    assert_eq!(response["result"]["text"], text);
    assert_silent_success(&bridge.close().await);

    let followed: Vec<_> = upstream
        .recorded()
        .into_iter()
        .filter(|request| request.target == "/mcp/")
        .collect();
    assert!(
        followed
            .iter()
            .all(|request| request.header("authorization") == Some("Bearer hush"))
    );
    assert!(
        followed
            .iter()
            .any(|request| request.method == http::Method::DELETE)
    );
}

/// All of 300 concurrent calls get a response, although only 256 are sent concurrently.
#[tokio::test]
async fn three_hundred_concurrent_calls() {
    let upstream = Upstream::start().await;
    let mut bridge = Bridge::start(&format!("{}/mcp", upstream.origin()), &[], &[]);
    bridge.initialize().await;
    for id in 1..=300 {
        bridge
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "echo", "params": { "n": id } }))
            .await;
    }
    let mut received = HashSet::new();
    while received.len() < 300 {
        let response = bridge.receive().await;
        assert_eq!(response["result"]["n"], response["id"], "{response}");
        received.insert(response["id"].as_i64().unwrap());
    }
}

/// Messages of 20 MB are forwarded in both directions. For one above `--max-message`, the error
/// response has the id of the message, which follows the long text.
#[tokio::test]
async fn large_messages() {
    let text = "x".repeat(20_000_000);
    let request =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{{"text":"{text}"}}}}"#);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
    // Not parsed here: without optimization, that takes seconds.
    let (expected, body) = (Bytes::from(request.clone()), Bytes::from(answer.clone()));
    let upstream = Upstream::scripted(move |request| {
        (request.body == expected).then(|| Upstream::response(200, &[JSON], body.clone()))
    })
    .await;
    let url = format!("{}/mcp", upstream.origin());
    let mut bridge = Bridge::start(&url, &[], &[]);
    bridge.initialize().await;
    bridge.send_line(&request).await;
    assert!(bridge.line().await == answer, "the answer is unchanged");
    drop(bridge);

    let mut bridge = Bridge::start(&url, &["--max-message", "1"], &[]);
    bridge.initialize().await;
    bridge
        .send_line(&format!(
            r#"{{"method":"echo","params":{{"text":"{text}"}},"jsonrpc":"2.0","id":"late"}}"#
        ))
        .await;
    let response = bridge.receive().await;
    assert_eq!(response["id"], "late");
    assert_eq!(response["error"]["data"]["reason"], "bridge.too_large");
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--max-message"),
        "{response}"
    );
    assert!(bridge.request(2, "echo", json!({})).await["result"].is_object());
}

/// I9: a redirect to another origin or path, or with another method, is not followed. The error
/// names the target, and the token is not sent there.
#[tokio::test]
async fn other_redirects_are_not_followed() {
    let other = Upstream::start().await;
    let elsewhere = format!("{}/mcp?code=secret", other.origin());
    for (status, target, shown) in [
        (307, elsewhere.clone(), format!("{}/mcp,", other.origin())),
        (308, elsewhere, format!("{}/mcp,", other.origin())),
        (
            307,
            "/other".into(),
            "/other, which is not followed: the target is outside the resource".into(),
        ),
        (307, "/mcp/..%2fother".into(), "outside the resource".into()),
        (
            302,
            "/mcp/".into(),
            "/mcp/, which is not followed: only 307 and 308 are followed".into(),
        ),
    ] {
        let location = target.clone();
        let upstream = Upstream::scripted(move |request| {
            (request.target == "/mcp")
                .then(|| Upstream::response(status, &[("location", location.as_str()), JSON], ""))
        })
        .await;
        let url = format!("{}/mcp", upstream.origin());
        let mut bridge = Bridge::start(&url, &[], &[("PORTCULLIS_TOKEN", "hush")]);
        let response = bridge.initialize().await;
        let message = response["error"]["message"].as_str().unwrap();
        assert!(message.contains(&shown), "{target}: {message}");
        assert!(!message.contains("secret"), "{target}: {message}");
        assert_eq!(response["error"]["data"]["reason"], "mcp.redirected");
        let call = Portcullis::run_with(
            &["call", &url, "tools/list"],
            &[("PORTCULLIS_TOKEN", "hush")],
        )
        .await;
        assert_eq!(call.code, Some(1), "{call:?}");
        assert!(call.stderr.contains(&shown), "{call:?}");
        assert!(
            upstream
                .recorded()
                .iter()
                .all(|request| request.target == "/mcp")
        );
    }
    assert_eq!(other.count(), 0);
}
