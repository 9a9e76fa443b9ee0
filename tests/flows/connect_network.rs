//! `portcullis connect` with servers behind load balancers and proxies, and with many and large messages.

use flate2::{Compression, write::GzEncoder};
use portcullis_scenarios::{Portcullis, Upstream};
use serde_json::{Value, json};
use std::{collections::HashSet, io::Write as _};
use tokio::time::timeout;

use crate::connect::{Bridge, TIMEOUT};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A server that redirects to its path with a slash, as Starlette does, behind a load balancer that wants its cookie, and
/// compresses its responses: the bridge follows, repeats the body, returns the cookie and decompresses.
#[tokio::test]
async fn a_redirect_a_cookie_and_a_compressed_response() {
    let upstream = Upstream::scripted(|request| {
        if request.target == "/mcp" {
            let cookie = ("set-cookie", "AWSALB=instance-1; Path=/; HttpOnly");
            return Some(Upstream::answer(307, &[("location", "/mcp/"), cookie], ""));
        }
        if request.header("cookie") != Some("AWSALB=instance-1") {
            return Some(Upstream::answer(400, &[], "another instance"));
        }
        if request.message_method().as_deref() != Some("echo") || request.header("accept-encoding") != Some("gzip") {
            return None;
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": message["params"] });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        write!(encoder, "data: {answer}\n\n").unwrap();
        let headers = [("content-type", "text/event-stream"), ("content-encoding", "gzip")];
        Some(Upstream::answer(200, &headers, encoder.finish().unwrap()))
    })
    .await;
    let token = [("PORTCULLIS_TOKEN", "hush")];
    let mut bridge = Bridge::start(&format!("{}/mcp", upstream.origin()), &[], &token);
    assert!(bridge.initialize().await["result"].is_object());
    let text = "x".repeat(100_000);
    let answer = bridge.ask(1, "echo", json!({ "text": text })).await;
    assert_eq!(answer["result"]["text"], text);
    drop(bridge.input.take());
    let (code, rest, log) = bridge.ended().await;
    assert_eq!((code, rest, log.as_str()), (Some(0), vec![], ""));
    let followed: Vec<_> = upstream.recorded().into_iter().filter(|request| request.target == "/mcp/").collect();
    assert!(followed.iter().all(|request| request.header("authorization") == Some("Bearer hush")));
    assert!(followed.iter().any(|request| request.method == http::Method::DELETE));
}

/// 300 calls at once are all answered, although only 256 are sent at once.
#[tokio::test]
async fn three_hundred_calls_at_once() {
    let upstream = Upstream::start().await;
    let mut bridge = Bridge::start(&format!("{}/mcp", upstream.origin()), &[], &[]);
    bridge.initialize().await;
    for id in 1..=300 {
        bridge.send(json!({ "jsonrpc": "2.0", "id": id, "method": "echo", "params": { "n": id } })).await;
    }
    let mut answered = HashSet::new();
    while answered.len() < 300 {
        let line = timeout(TIMEOUT, bridge.output.next_line()).await.unwrap().unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["n"], answer["id"], "{answer}");
        answered.insert(answer["id"].as_i64().unwrap());
    }
}

/// Messages of 20 MB pass in both directions; one above `--max-message` is answered with its own identifier, which stands
/// behind the text.
#[tokio::test]
async fn large_messages() {
    let upstream = Upstream::start().await;
    let url = format!("{}/mcp", upstream.origin());
    let mut bridge = Bridge::start(&url, &[], &[]);
    bridge.initialize().await;
    let text = "x".repeat(20_000_000);
    let answer = bridge.ask(1, "echo", json!({ "text": text })).await;
    assert_eq!(answer["result"]["text"].as_str().unwrap().len(), text.len());
    drop(bridge);

    let mut bridge = Bridge::start(&url, &["--max-message", "1"], &[]);
    bridge.initialize().await;
    bridge.line(&format!(r#"{{"method":"echo","params":{{"text":"{text}"}},"jsonrpc":"2.0","id":"late"}}"#)).await;
    let line = timeout(TIMEOUT, bridge.output.next_line()).await.unwrap().unwrap().unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["data"]["reason"]), (&json!("late"), &json!("bridge.too_large")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("--max-message"), "{answer}");
    assert!(bridge.ask(2, "echo", json!({})).await["result"].is_object());
}

/// I9: a redirect to another origin or path, or with another method, is refused with its target, and the token stays.
#[tokio::test]
async fn other_redirects_are_refused_with_their_target() {
    let evil = Upstream::start().await;
    let elsewhere = format!("{}/mcp?code=secret", evil.origin());
    for (status, target, shown) in [
        (307, elsewhere.clone(), format!("{}/mcp,", evil.origin())),
        (308, elsewhere, format!("{}/mcp,", evil.origin())),
        (307, "/other".into(), "/other, which is not followed: the target is outside the resource".into()),
        (307, "/mcp/..%2fother".into(), "outside the resource".into()),
        (302, "/mcp/".into(), "/mcp/, which is not followed: only 307 and 308 are followed".into()),
    ] {
        let location = target.clone();
        let upstream = Upstream::scripted(move |request| {
            (request.target == "/mcp").then(|| Upstream::answer(status, &[("location", location.as_str()), JSON], ""))
        })
        .await;
        let url = format!("{}/mcp", upstream.origin());
        let mut bridge = Bridge::start(&url, &[], &[("PORTCULLIS_TOKEN", "hush")]);
        let answer = bridge.initialize().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&shown) && !message.contains("secret"), "{target}: {message}");
        assert_eq!(answer["error"]["data"]["reason"], "mcp.redirected");
        let call = Portcullis::run_with(&["call", &url, "tools/list"], &[("PORTCULLIS_TOKEN", "hush")]).await;
        assert!(call.code == Some(1) && call.stderr.contains(&shown), "{call:?}");
        assert!(upstream.recorded().iter().all(|request| request.target == "/mcp"));
    }
    assert_eq!(evil.count(), 0);
}
