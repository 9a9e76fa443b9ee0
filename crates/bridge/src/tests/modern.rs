//! Revision 2026-07-28: mirrored headers, cancellations, and streams that end early.

use serde_json::{Value, json};

use super::server::{Client, Server, ServerResponse, settle};

/// Returns the parameters of a modern request.
fn params(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    params
}

fn tool(header: &str) -> Value {
    let properties = json!({ "region": { "type": "string", "x-mcp-header": header } });
    json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } })
}

/// F5: the headers repeat the values of the body, and there is neither a session nor a handshake.
#[tokio::test(start_paused = true)]
async fn requests_are_mirrored() {
    let server = Server::new(|request| {
        ServerResponse::json(200, &request.result(json!({}))).header("mcp-session-id", "stray")
    });
    let mut client = Client::start(&server);
    for (id, method, members) in [
        (1, "server/discover", json!({})),
        (2, "prompts/get", json!({ "name": "währung" })),
        (3, "resources/read", json!({ "uri": "file:///a b" })),
    ] {
        client.request(id, method, params(members)).await;
        assert_eq!(client.next().await["id"], id);
    }
    client.notify("notifications/own", json!({})).await;
    assert!(client.close().await.is_empty());

    let mirrored: Vec<_> = server
        .requests()
        .iter()
        .map(|request| {
            let header = |name: &str| request.header(name).map(str::to_owned);
            assert_eq!(
                header("mcp-protocol-version").as_deref(),
                Some("2026-07-28")
            );
            assert_eq!(header("mcp-session-id"), None);
            (header("mcp-method").unwrap(), header("mcp-name"))
        })
        .collect();
    let expected = [
        ("server/discover", None),
        ("prompts/get", Some("=?base64?d8OkaHJ1bmc=?=")),
        ("resources/read", Some("file:///a b")),
        ("notifications/own", None),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(a, b)| ((*a).to_owned(), b.map(str::to_owned)))
        .collect();
    assert_eq!(mirrored, expected);
}

/// Arguments are also sent in the headers that the tool's definition names. Invalid definitions are
/// removed from the list.
#[tokio::test(start_paused = true)]
async fn arguments_are_sent_in_headers() {
    let server = Server::new(|request| match request.name() {
        "tools/list" => {
            let mut broken = tool("a b");
            broken["name"] = "broken".into();
            ServerResponse::json(
                200,
                &request.result(json!({ "tools": [tool("Region"), broken], "z": 1.0, "a": [] })),
            )
        }
        _ => ServerResponse::json(200, &request.result(json!({}))),
    });
    let mut client = Client::start(&server);
    client.request(1, "tools/list", params(json!({}))).await;
    assert_eq!(
        client.next().await["result"],
        json!({ "tools": [tool("Region")], "z": 1.0, "a": [] })
    );

    client
        .request(
            2,
            "tools/call",
            params(json!({ "name": "t", "arguments": { "region": "eu" } })),
        )
        .await;
    client.next().await;
    let call = &server.named("tools/call")[0];
    assert_eq!(call.header("mcp-param-region"), Some("eu"));
    assert_eq!(call.header("mcp-name"), Some("t"));
}

/// The rest of a filtered list stays as it is, also if it cannot be represented as a value.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_filtered_list_is_unchanged() {
    for value in [
        "1e400".to_owned(),
        r#""\ud800""#.to_owned(),
        "[".repeat(20_000) + &"]".repeat(20_000),
    ] {
        let list = |tools: &str| format!(r#"{{"x":{value},"tools":[{tools}], "y": 1.0}}"#);
        let sent = list(&tool("a b").to_string());
        let server = Server::new(move |request| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{sent}}}"#,
                request.id()
            );
            ServerResponse::events(&[&format!("data: {text}\n\n")])
        });
        let mut client = Client::start(&server);
        client.request(1, "tools/list", params(json!({}))).await;
        assert_eq!(
            client.next_line().await,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, list(""))
        );
        client.request(2, "prompts/list", params(json!({}))).await;
        assert!(
            client.next_line().await.contains("a b"),
            "other results are not filtered"
        );
    }
}

/// A list is not forwarded if it is not clear which tools the client would read.
#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_filtered_is_an_error() {
    let server = Server::new(move |request| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[],"tools":[]}}}}"#,
            request.id()
        );
        ServerResponse::events(&[&format!("data: {text}\n\n")])
    });
    let mut client = Client::start(&server);
    client.request(1, "tools/list", params(json!({}))).await;
    assert_eq!(client.reason().await, (1, "mcp.answer".into()));
}

/// If the server reports missing headers, the tools are listed and the request is repeated once.
#[tokio::test(start_paused = true)]
async fn missing_headers_are_added() {
    let mismatch = |request: &super::server::ServerRequest| {
        let error = json!({ "code": -32020, "message": "Header mismatch" });
        ServerResponse::json(
            400,
            &json!({ "jsonrpc": "2.0", "id": request.id(), "error": error }),
        )
    };
    let server =
        Server::new(
            move |request| match (request.name(), request.header("mcp-param-region")) {
                ("tools/list", _) if request.body["params"]["cursor"] == "next" => {
                    ServerResponse::json(200, &request.result(json!({ "tools": [tool("Region")] })))
                }
                ("tools/list", _) => ServerResponse::json(
                    200,
                    &request.result(json!({ "tools": [], "nextCursor": "next" })),
                ),
                ("tools/call", Some("eu")) => ServerResponse::json(200, &request.result(json!({}))),
                _ => mismatch(request),
            },
        );
    let mut client = Client::start(&server);
    client
        .request(
            1,
            "tools/call",
            params(json!({ "name": "t", "arguments": { "region": "eu" } })),
        )
        .await;
    assert_eq!(
        client.next().await,
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
    );

    let lists = server.named("tools/list");
    assert_eq!(lists.len(), 2);
    assert!(
        lists
            .iter()
            .all(|list| list.body["params"]["_meta"]["progressToken"].is_null()),
        "{lists:?}"
    );

    client
        .request(
            2,
            "tools/call",
            params(json!({ "name": "t", "arguments": { "region": "us" } })),
        )
        .await;
    assert_eq!(client.next().await["error"]["code"], -32020);
    assert_eq!(
        server.named("tools/call").len(),
        4,
        "each request is repeated once"
    );
}

/// A cancellation closes the response stream. No notification is sent, and the client gets no
/// response.
#[tokio::test(start_paused = true)]
async fn a_cancellation_closes_the_stream() {
    let (response, body) = ServerResponse::open();
    let mut response = Some(response);
    let server = Server::new(move |_| response.take().unwrap());
    let mut client = Client::start(&server);
    client
        .request(1, "subscriptions/listen", params(json!({})))
        .await;
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    body.send(Ok(format!(": ping\n\ndata: {notice}\n\n").into()))
        .unwrap();
    assert_eq!(client.next().await, notice);
    client
        .notify("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    body.closed().await;
    settle().await;
    assert_eq!(server.requests().len(), 1);
    assert!(client.close().await.is_empty());
}

/// Streams of 2026-07-28 cannot be resumed.
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_is_an_error() {
    let server = Server::new(|_| ServerResponse::events(&["id: 1\nretry: 1\ndata:\n\n"]));
    let mut client = Client::start(&server);
    client
        .request(1, "tools/call", params(json!({ "name": "t" })))
        .await;
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    assert_eq!(server.requests().len(), 1);
}

/// A legacy server's response to a probe is not a modern error, so the client falls back to the
/// handshake.
#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_detected_by_the_client() {
    let server = Server::legacy(|request| match request.header("mcp-method") {
        Some(_) => ServerResponse::status(400),
        None => ServerResponse::json(200, &request.result(json!({}))),
    });
    let mut client = Client::start(&server);
    client
        .request(7, "server/discover", params(json!({})))
        .await;
    let response = client.next().await;
    assert_eq!(response["id"], 7);
    assert_eq!(response["error"]["code"], -32603);
    client.initialize().await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.next().await["result"], json!({}));
}
