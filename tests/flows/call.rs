//! `portcullis call`: scopes, registration, progress, exit codes and the HTTP+SSE transport of
//! 2024-11-05.

use std::sync::Arc;

use parking_lot::Mutex;
use portcullis_scenarios::{ChannelBody, Peer, Portcullis, Scratch, Upstream};
use serde_json::{Value, json};

const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

/// A result with `isError` is printed, and the exit code is 3. Each progress notification is a line
/// on standard error.
#[tokio::test]
async fn a_failed_tool_and_progress() {
    let upstream = Upstream::scripted(|request| {
        if request.message_method().as_deref() != Some("tools/call") {
            return None;
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        let token = &message["params"]["_meta"]["progressToken"];
        assert!(token.is_number(), "{message}");
        let params = json!({ "progressToken": token, "progress": 3, "total": 10, "message": "reading" });
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        let failed = message["params"]["name"] == "fails";
        let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "content": [], "isError": failed } });
        Some(Upstream::response(200, &[EVENTS], format!("data: {progress}\n\ndata: {response}\n\n")))
    })
    .await;
    let url = format!("{}/mcp", upstream.origin());
    for (name, code) in [("fails", 3), ("works", 0)] {
        let params = json!({ "name": name }).to_string();
        let called = Portcullis::run(&["call", &url, "tools/call", &params]).await;
        assert_eq!(called.code, Some(code), "{called:?}");
        assert_eq!(called.stderr, "progress 3/10: reading\n", "{called:?}");
        assert_eq!(
            serde_json::from_str::<Value>(&called.stdout).unwrap()["isError"],
            code == 3
        );
    }
}

/// A server of 2024-11-05 rejects the POST to the stream's URL, and sends its responses on the
/// stream.
#[tokio::test]
async fn a_server_of_2024_11_05() {
    let stream = Arc::new(Mutex::new(None));
    let upstream = Upstream::scripted(move |request| {
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match (request.method.as_str(), request.target.as_str()) {
            ("GET", "/sse") => {
                let (sender, body) = ChannelBody::new();
                sender
                    .send("event: endpoint\ndata: /messages?session=1\n\n".into())
                    .unwrap();
                *stream.lock() = Some(sender);
                Some(Upstream::streaming(200, &[EVENTS], body))
            }
            ("POST", "/messages?session=1") => {
                let result = match message["method"].as_str() {
                    Some("initialize") => {
                        json!({ "protocolVersion": "2024-11-05", "capabilities": {} })
                    }
                    _ => json!({ "tools": [message["method"]] }),
                };
                if !message["id"].is_null() {
                    let response =
                        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    let event = format!("event: message\ndata: {response}\n\n");
                    stream.lock().as_ref().unwrap().send(event.into()).unwrap();
                }
                Some(Upstream::response(202, &[], "Accepted"))
            }
            _ => Some(Upstream::response(405, &[], "")),
        }
    })
    .await;
    let url = format!("{}/sse", upstream.origin());
    let called = Portcullis::run_with(
        &["call", &url, "tools/list"],
        &[("PORTCULLIS_TOKEN", "hush")],
    )
    .await;
    assert_eq!(called.code, Some(0), "{called:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&called.stdout).unwrap()["tools"],
        json!(["tools/list"])
    );

    for request in upstream.recorded() {
        assert_eq!(
            request.header("authorization"),
            Some("Bearer hush"),
            "{request:?}"
        );
    }
}

/// Two calls without a login register one client, and store no token.
#[tokio::test]
async fn calls_register_once() {
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&[&["demo"][..], &listen].concat()).await;
    let url = format!("http://{}/mcp", demo.address());
    let store = Scratch::path_for("store");
    let mut stored = Vec::new();
    for _ in 0..2 {
        let options = ["--auto-consent", "--store", store.as_str()];
        let called = Portcullis::run(&[&["call", &url, "tools/list"][..], &options].concat()).await;
        assert_eq!(called.code, Some(0), "{called:?}");
        let names: Vec<_> = std::fs::read_dir(store.as_str())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".json"))
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].starts_with("client-"), "{names:?}");
        let client = std::fs::read(store.path().join(&names[0])).unwrap();
        stored.push(
            serde_json::from_slice::<Value>(&client).unwrap()["registration"]["client_id"].clone(),
        );
    }
    assert!(stored[0].is_string(), "{stored:?}");
    assert_eq!(stored[0], stored[1], "the second call uses the same client");
}

/// I6: with `--scope`, a challenge for other scopes causes an error that names them.
#[tokio::test]
async fn a_challenge_beyond_the_scope_is_an_error() {
    let peer = Peer::start(|request| {
        if request.path != "/mcp" || request.authorization.is_none() {
            return None;
        }
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
        let response = http::Response::builder()
            .status(403)
            .header("www-authenticate", challenge);
        Some(response.body(String::new()).unwrap())
    })
    .await;
    let store = Scratch::path_for("store");
    let options = [
        "--auto-consent",
        "--scope",
        "read",
        "--store",
        store.as_str(),
    ];
    let called =
        Portcullis::run(&[&["call", &peer.url("/mcp"), "tools/list"][..], &options].concat()).await;
    assert_eq!(called.code, Some(1), "{called:?}");
    assert!(called.stderr.contains("admin"), "{called:?}");

    let scopes: Vec<_> = peer
        .requests("/authorize")
        .iter()
        .map(|request| request.query["scope"].clone())
        .collect();
    assert_eq!(scopes, ["read"]);
}
