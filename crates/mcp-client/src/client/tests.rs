//! Sessions, modern calls and streams of the MCP client.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderName, HeaderValue, header};
use portcullis_client::{AuthorizerSettings, ScriptedUser};
use portcullis_mcp::{Revision, header as names};
use portcullis_testkit::{
    FetchFn, ManualClock, Reply,
    protected_resource::{RESOURCE, well_behaved},
};
use serde_json::json;

use super::*;

mod event_types;
mod http_sse;
mod lost_sessions;
mod rejections;
mod server_requests;

const SESSION: HeaderName = names::SESSION;

fn client(network: &Arc<FetchFn>, user: &Arc<ScriptedUser>, revision: Revision) -> McpClient {
    let authorizer = Authorizer::builder(user.clone())
        .fetch(network.clone())
        .clock(Arc::new(ManualClock::new()))
        .build()
        .unwrap();
    let settings = McpSettings {
        revision,
        max_message: 4 * 1024 * 1024,
        ..McpSettings::default()
    };
    let start = StartUrl::parse(RESOURCE).unwrap();
    McpClient::new(start, network.clone(), Some(Arc::new(authorizer)), settings)
}

/// Returns a network with these responses of the protected endpoint, and default responses for
/// other URLs.
fn endpoint(
    respond: impl Fn(&Value, &FetchRequest) -> Reply + Send + Sync + 'static,
) -> Arc<FetchFn> {
    FetchFn::new(move |request| {
        well_behaved(request).or_else(|| {
            let message = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            (request.url.as_str() == RESOURCE).then(|| respond(&message, request))
        })
    })
}

fn result(message: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

/// Responds as a legacy server with one session.
fn legacy(message: &Value, request: &FetchRequest) -> Reply {
    let in_session = request
        .headers
        .get(SESSION)
        .is_some_and(|value| value == "s-1");
    match (&request.method, message["method"].as_str()) {
        (&Method::POST, Some("initialize")) => {
            let agreed = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
            Reply::json(200, result(message, agreed)).header(SESSION, "s-1")
        }
        _ if !in_session || request.headers[names::PROTOCOL_VERSION] != "2025-06-18" => {
            Reply::status(400)
        }
        (&Method::POST, Some("tools/call")) => {
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
            let response = result(message, json!({ "content": [] }));
            Reply::events(&[
                ": hello\n\nid: 1\ndata:\n\ndata: ",
                &progress.to_string(),
                "\n\ndata: ",
                &format!("{response}\n\n"),
            ])
        }
        (&Method::POST, Some(_)) if message.get("id").is_none() => Reply::status(202),
        (&Method::POST, Some(_)) => Reply::json(200, result(message, json!("ok"))),
        (&Method::GET, _) => {
            Reply::events(&["data: {\"a\"", ":1}\n\n", "data: {\"a\":2}\n\ndata: half"])
        }
        _ => Reply::status(204),
    }
}

/// I9: a legacy session needs one authorization, and all later requests have the token.
#[tokio::test]
async fn a_legacy_session() {
    let network = endpoint(legacy);
    let user = ScriptedUser::consents();
    let client = client(&network, &user, Revision::V2025_11_25);
    let agreed = client.initialize().await.unwrap().unwrap();
    assert_eq!(agreed["protocolVersion"], "2025-06-18");

    assert_eq!(client.call("ping", None).await.unwrap(), "ok");
    let mut observed = Vec::new();
    let params = json!({ "name": "add" });
    let response = client
        .call_with_observer("tools/call", Some(params), &mut |message| {
            observed.push(message)
        })
        .await;
    assert_eq!(response.unwrap(), json!({ "content": [] }));
    assert_eq!(observed.len(), 1);

    client
        .notify("notifications/cancelled", None)
        .await
        .unwrap();

    let mut stream = client.open_stream().await.unwrap();
    let shown = format!("{client:?} {stream:?}");
    assert!(shown.contains("McpClient { settings: "), "{shown}");
    assert!(shown.contains("MessageStream { ready: 0"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(stream.next().await.unwrap().unwrap()["a"], 1);
    assert_eq!(stream.next().await.unwrap().unwrap()["a"], 2);
    assert!(stream.next().await.unwrap().is_none());

    client.delete().await.unwrap();
    assert_eq!(
        client.delete().await.unwrap_err().code(),
        "mcp.not_initialized"
    );

    let sent = network.to(RESOURCE);
    let first: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(
        first["params"]["clientInfo"],
        json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") })
    );
    assert!(!sent[0].headers.contains_key(header::AUTHORIZATION));
    assert!(
        sent[1..]
            .iter()
            .all(|request| request.headers[header::AUTHORIZATION] == "Bearer hush")
    );
    assert_eq!(user.visits(), 1);

    let others = network
        .requests()
        .into_iter()
        .filter(|request| request.url.as_str() != RESOURCE);
    assert!(
        others
            .into_iter()
            .all(|request| !request.headers.contains_key(header::AUTHORIZATION))
    );
}

/// A 405 to the DELETE of a session is accepted. Another rejection is an error.
#[tokio::test]
async fn a_server_can_refuse_to_delete_sessions() {
    for (status, expected) in [(204, Ok(())), (405, Ok(())), (500, Err("mcp.status"))] {
        let network = endpoint(move |message, request| match request.method {
            Method::DELETE => Reply::status(status),
            _ => legacy(message, request),
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        assert_eq!(
            client.delete().await.map_err(|error| error.code()),
            expected,
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_new_session_identifier_replaces_the_old_one() {
    let network = endpoint(|message, request| match message["method"].as_str() {
        Some("initialize") => legacy(message, request),
        _ => Reply::json(
            200,
            result(message, json!(request.headers[SESSION].to_str().unwrap())),
        )
        .header(SESSION, "s-2"),
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    assert_eq!(client.call("ping", None).await.unwrap(), "s-2");
}

#[tokio::test]
async fn a_modern_call_needs_no_session() {
    let network = endpoint(|message, request| {
        assert_eq!(request.headers[names::PROTOCOL_VERSION], "2026-07-28");
        assert_eq!(request.headers[names::METHOD], "tools/call");
        assert_eq!(request.headers[names::NAME], "add");
        Reply::json(200, result(message, json!(3))).header(SESSION, "stray")
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
    assert_eq!(client.initialize().await.unwrap(), None);

    for _ in 0..2 {
        assert_eq!(
            client
                .call("tools/call", Some(json!({ "name": "add" })))
                .await
                .unwrap(),
            3
        );
    }
    assert!(
        network
            .to(RESOURCE)
            .iter()
            .all(|request| !request.headers.contains_key(SESSION))
    );
    assert_eq!(
        client.open_stream().await.unwrap_err().code(),
        "mcp.not_in_revision"
    );
    assert_eq!(
        client.delete().await.unwrap_err().code(),
        "mcp.not_in_revision"
    );
}

/// A response that does not end is read message by message.
#[tokio::test]
async fn a_response_is_read_as_a_stream() {
    let network = endpoint(|message, _| {
        assert_eq!(message["method"], "subscriptions/listen");
        let last = format!("data: {}\n\n", result(message, json!({})));
        Reply::events(&[
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
            &last,
        ])
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
    let mut stream = client
        .call_stream("subscriptions/listen", Some(json!({})))
        .await
        .unwrap();
    assert_eq!(
        stream.next().await.unwrap().unwrap()["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(stream.next().await.unwrap().unwrap()["result"], json!({}));
    assert_eq!(stream.next().await.unwrap(), None);
}

/// The rules for annotations of tools apply only to 2026-07-28. A legacy list is not changed.
#[tokio::test]
async fn a_legacy_list_of_tools_is_unchanged() {
    let properties = json!({ "p": { "type": "string", "x-mcp-header": "" } });
    let list = json!({ "tools": [{ "name": "t", "inputSchema": { "properties": properties } }] });
    let response = list.clone();
    let network = endpoint(move |message, request| match message["method"].as_str() {
        Some("tools/list") => Reply::json(200, result(message, response.clone())),
        _ => legacy(message, request),
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    assert_eq!(client.call("tools/list", None).await.unwrap(), list);
}

/// A legacy stream that ends early is resumed after its last event; one that cannot be resumed has
/// ended.
#[tokio::test(start_paused = true)]
async fn an_ended_stream_is_resumed() {
    let network =
        endpoint(
            |message, request| match (&request.method, message["method"].as_str()) {
                (&Method::POST, Some("tools/call")) => {
                    Reply::events(&["id: e1\nretry: 2500\ndata:\n\n"])
                }
                (&Method::POST, Some("resources/read")) => Reply::events(&["retry: 10\ndata:\n\n"]),
                (&Method::POST, Some("resources/list")) => {
                    Reply::events(&["id: e1\ndata:\n\n", "id:\ndata:\n\n"])
                }
                (&Method::POST, Some("prompts/get")) => Reply::events(&["id: dead\ndata:\n\n"]),
                (&Method::GET, _) => {
                    match request.headers[names::LAST_EVENT_ID].to_str().unwrap() {
                        "e1" => Reply::events(&["id: e2\ndata:\n\n"]),
                        "e2" => Reply::events(&[
                            "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"late\"}\n\n",
                        ]),
                        _ => Reply::events(&[]),
                    }
                }
                _ => legacy(message, request),
            },
        );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(client.call("tools/call", None).await.unwrap(), "late");
    assert_eq!(begun.elapsed().as_millis(), 5_000);
    assert_eq!(
        client
            .call("resources/read", None)
            .await
            .unwrap_err()
            .code(),
        "mcp.ended"
    );

    let before = network.to(RESOURCE).len();
    assert_eq!(
        client
            .call("resources/list", None)
            .await
            .unwrap_err()
            .code(),
        "mcp.ended"
    );
    assert_eq!(
        network.to(RESOURCE).len() - before,
        1,
        "an empty identifier clears the position"
    );
    let before = network.to(RESOURCE).len();
    assert_eq!(
        client.call("prompts/get", None).await.unwrap_err().code(),
        "mcp.ended"
    );
    assert_eq!(network.to(RESOURCE).len() - before, 1 + 8);
}

/// A legacy stream that breaks is resumed as well, and a failed attempt is followed by another one.
/// The error of a stream that cannot be resumed is its own.
#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_resumed() {
    let attempts = AtomicUsize::new(0);
    let network =
        endpoint(
            move |message, request| match (&request.method, message["method"].as_str()) {
                (&Method::POST, Some("tools/call")) => {
                    Reply::events(&["id: e1\ndata:\n\ndata: half"]).interrupted()
                }
                (&Method::POST, Some("resources/read")) => {
                    Reply::events(&["data:\n\n"]).interrupted()
                }
                (&Method::POST, Some("prompts/get")) => {
                    Reply::events(&["id: gone\ndata:\n\n"]).interrupted()
                }
                (&Method::GET, _) if request.headers[names::LAST_EVENT_ID] == "gone" => {
                    Reply::status(404)
                }
                (&Method::GET, _) => match attempts.fetch_add(1, Ordering::Relaxed) {
                    0 => Reply::status(503),
                    1 => Reply::status(429),
                    2 => Reply::events(&[]).interrupted(),
                    _ => Reply::events(&[
                        "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"late\"}\n\n",
                    ]),
                },
                _ => legacy(message, request),
            },
        );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    assert_eq!(client.call("tools/call", None).await.unwrap(), "late");
    assert_eq!(
        client
            .call("resources/read", None)
            .await
            .unwrap_err()
            .code(),
        "fetch.interrupted"
    );
    assert_eq!(
        client.call("prompts/get", None).await.unwrap_err().code(),
        "mcp.session_lost"
    );
    for method in ["tools/call", "resources/read", "prompts/get"] {
        assert_eq!(server_requests::sent(&network, method).len(), 1, "{method}");
    }
}
