//! The serve example: the challenge, a request that reaches the upstream, and the end.

use std::thread;

use axum::{Router, routing::post};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use portcullis_serve::{Server, Signals};
use serde_json::json;
use tokio::{net::TcpStream, runtime::Builder, sync::watch};

#[allow(dead_code, reason = "this example has no app")]
mod support;

#[allow(dead_code, reason = "its main is not called here")]
#[path = "../serve.rs"]
mod example;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},
    "io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}"#;

/// B1: a program serves a plan made in code: without a token, the response is a challenge; with
/// one, it is that of the upstream.
#[tokio::test]
async fn a_program_serves_a_plan_made_in_code() {
    let (upstream, upstream_base) = support::listener().await;
    let answer = async || axum::Json(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}));
    support::serve(upstream, Router::new().route("/mcp", post(answer)));
    let (free, base) = support::listener().await;
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let resource = format!("{base}/mcp");
    let issuer = support::issuer(&resource).await;

    let plan = example::plan(
        &address,
        issuer.issuer().as_str(),
        &format!("{upstream_base}/mcp"),
    )
    .unwrap();
    let (stop, stopped) = watch::channel(false);
    let server = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Server::new(plan).serve(Signals::stop_with(stopped)))
    });
    while TcpStream::connect(&address).await.is_err() {
        assert!(!server.is_finished(), "the server has ended");
        tokio::task::yield_now().await;
    }

    let request = || {
        let mut request =
            FetchRequest::post_json(resource.parse().unwrap(), CALL, UrlPolicy::Operator);
        for (name, value) in [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ] {
            request.headers.insert(name, value.parse().unwrap());
        }
        request
    };
    let denied = support::send(request(), None).await;
    assert_eq!(denied.status, 401);
    assert!(
        denied.headers["www-authenticate"]
            .to_str()
            .unwrap()
            .contains("/.well-known/oauth-protected-resource/mcp")
    );
    let token = issuer.token().scope("mcp:tools").sign();
    let allowed = support::send(request(), Some(&token)).await;
    assert_eq!(allowed.status, 200, "{:?}", allowed.body);
    assert!(
        String::from_utf8_lossy(&allowed.body).contains(r#""tools":[]"#),
        "{:?}",
        allowed.body
    );

    stop.send(true).unwrap();
    server.join().unwrap().unwrap();
}

/// The example stays short: 30 lines without its imports and comments.
#[test]
fn the_example_is_short() {
    let source = include_str!("../serve.rs");
    let code = source.split("#[tokio::main").nth(1).unwrap();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .count();
    assert!(lines <= 30, "{lines} lines");
}
