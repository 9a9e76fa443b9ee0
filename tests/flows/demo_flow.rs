//! The complete flow, starting with only the endpoint's URL, against `portcullis demo`.

use std::sync::Arc;

use portcullis_client::{Authorizer, AutoConsent, StartUrl};
use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_mcp::Revision;
use portcullis_mcp_client::{McpClient, McpSettings};
use portcullis_scenarios::{INITIALIZE, Portcullis, Request, call_message};
use serde_json::{Value, json};

async fn demo() -> Portcullis {
    Portcullis::start(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ])
    .await
}

/// A client of this revision that signs in with automatic consent.
fn client(demo: &Portcullis, revision: Revision) -> McpClient {
    let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
    let consent = Arc::new(AutoConsent::new(fetch.clone()));
    let authorizer = Authorizer::builder(consent)
        .fetch(fetch.clone())
        .build()
        .unwrap();
    let start = StartUrl::parse(&format!("http://{}/mcp", demo.address())).unwrap();
    let mut settings = McpSettings::default();
    settings.revision = revision;
    McpClient::new(start, fetch, Some(Arc::new(authorizer)), settings)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {result}"))
}

/// E2, E4, E9: challenge, metadata, registration, consent, token, `initialize`, call, stream,
/// DELETE, and 400 afterwards.
#[tokio::test]
async fn the_whole_flow() {
    let demo = demo().await;
    let resource = format!("http://{}/mcp", demo.address());

    let response = Request::post("/mcp", INITIALIZE).send(demo.address()).await;
    assert_eq!(response.status, 401, "{response:?}");
    assert_eq!(response.challenge("error"), None, "{response:?}");
    let metadata_url = response.challenge("resource_metadata").unwrap();
    assert_eq!(
        metadata_url,
        format!(
            "http://{}/.well-known/oauth-protected-resource/mcp",
            demo.address()
        )
    );

    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ] {
        let document = Request::new("GET", path).send(demo.address()).await.json();
        assert_eq!(document["resource"], resource.as_str());
        assert_eq!(
            document["authorization_servers"].as_array().map(Vec::len),
            Some(1),
            "{document}"
        );
    }

    let client = client(&demo, Revision::V2025_11_25);
    let result = client.initialize().await.unwrap().unwrap();
    assert_eq!(result["protocolVersion"], "2025-11-25", "{result}");
    let tools = client.call("tools/list", None).await.unwrap();
    let mut names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["add", "multiply", "whoami"]);

    let sum = client
        .call(
            "tools/call",
            Some(json!({ "name": "add", "arguments": { "a": 2, "b": 3 } })),
        )
        .await
        .unwrap();
    assert_eq!(text(&sum), "5");
    let caller = client
        .call(
            "tools/call",
            Some(json!({ "name": "whoami", "arguments": {} })),
        )
        .await
        .unwrap();
    let caller: Value = serde_json::from_str(text(&caller)).unwrap();
    assert_eq!(caller["subject"], "alice", "{caller}");

    // The development server supports refresh tokens, so the client requests one.
    assert_eq!(
        caller["scopes"],
        json!(["mcp:tools", "offline_access"]),
        "{caller}"
    );
    let token = client.token().unwrap();
    assert_eq!(token.resource().as_str(), resource);

    let stream = client.open_stream().await.unwrap();
    drop(stream);
    client.delete().await.unwrap();

    let secret = token.access_token().secret().to_owned();
    let post = || Request::post("/mcp", call_message(9, "tools/list", &json!({}))).bearer(&secret);
    post().send(demo.address()).await.assert_no_session();
    post()
        .session("unknown")
        .send(demo.address())
        .await
        .assert_no_session();

    let finished = demo.stop().await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(
        !finished.stderr.contains(&secret),
        "the token is in the log"
    );
    assert!(
        !finished.stderr.contains(secret.rsplit('.').next().unwrap()),
        "its signature is in the log"
    );

    for word in ["code=", "code_verifier", "access_token", "Bearer "] {
        let line = finished.stderr.lines().find(|line| line.contains(word));
        assert!(
            line.is_none(),
            "{word} is in the log: {}",
            line.unwrap_or_default()
        );
    }
}

/// E4, E9: after a DELETE, the session is unknown for every method.
#[tokio::test]
async fn after_delete() {
    let demo = demo().await;
    let client = client(&demo, Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let token = client.token().unwrap().access_token().secret().to_owned();
    let opened = Request::post("/mcp", INITIALIZE)
        .bearer(&token)
        .send(demo.address())
        .await;
    assert_eq!(opened.status, 200, "{opened:?}");

    let session = opened.header("mcp-session-id").unwrap();
    let initialized = Request::post(
        "/mcp",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    assert_eq!(
        initialized
            .bearer(&token)
            .session(session)
            .send(demo.address())
            .await
            .status,
        202
    );
    let list = || {
        Request::post("/mcp", call_message(2, "tools/list", &json!({})))
            .bearer(&token)
            .session(session)
    };
    let response = list().send(demo.address()).await;
    assert_eq!(response.status, 200, "{response:?}");

    let response = Request::new("DELETE", "/mcp")
        .bearer(&token)
        .session(session)
        .send(demo.address())
        .await;
    assert!(matches!(response.status, 200 | 202 | 204), "{response:?}");
    list().send(demo.address()).await.assert_no_session();
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, "/mcp")
            .header("Accept", "text/event-stream")
            .bearer(&token)
            .session(session);
        let response = request.send(demo.address()).await;
        assert_eq!(response.status, 400, "{method}: {response:?}");
        assert_eq!(
            response.text().as_str(),
            "Invalid or missing session ID",
            "{method}: {response:?}"
        );
    }
}

/// E11: the same tools with revision 2026-07-28, without a session.
#[tokio::test]
async fn the_modern_flow() {
    let demo = demo().await;
    let client = client(&demo, Revision::V2026_07_28);
    assert!(client.initialize().await.unwrap().is_none());
    let product = client
        .call(
            "tools/call",
            Some(json!({ "name": "multiply", "arguments": { "a": 6, "b": 7 } })),
        )
        .await;
    assert_eq!(text(&product.unwrap()), "42");
}

/// The demo prints its address and three commands to try.
#[tokio::test]
async fn the_printed_commands() {
    let demo = demo().await;
    let address = demo.address();
    let finished = demo.stop().await;
    for line in [
        format!("curl -i -X POST http://{address}/mcp"),
        format!("curl http://{address}/.well-known/oauth-protected-resource/mcp"),
        format!("call --auto-consent http://{address}/mcp tools/call"),
    ] {
        assert!(
            finished.stdout.contains(&line),
            "{line} is missing:\n{}",
            finished.stdout
        );
    }
}
