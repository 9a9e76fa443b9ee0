//! Revisions with sessions: from the handshake to DELETE, lost sessions and streams.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Client, Server, ServerResponse, interrupted, settle};

fn progress(number: u32) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": number } })
}

fn no_session() -> Value {
    json!({ "jsonrpc": "2.0", "error": { "code": -32000, "message": "No valid session" }, "id": null })
}

#[tokio::test(start_paused = true)]
async fn a_session_from_its_handshake_to_its_end() {
    let server = Server::legacy(|request| {
        ServerResponse::messages(&[progress(1), progress(2), request.result(json!({ "n": 3 }))])
    });
    let mut client = Client::initialized(&server).await;
    client
        .request(1, "tools/call", json!({ "name": "t" }))
        .await;
    assert_eq!(
        [client.next().await, client.next().await],
        [progress(1), progress(2)]
    );
    assert_eq!(client.next().await["result"], json!({ "n": 3 }));
    assert!(client.close().await.is_empty());

    let requests = server.requests();
    assert_eq!(requests[0].header("mcp-session-id"), None);
    assert_eq!(
        requests[0].header("accept"),
        Some("application/json, text/event-stream")
    );
    for later in &requests[1..] {
        assert_eq!(
            later.header("mcp-session-id"),
            Some("s1"),
            "{}",
            later.name()
        );
        assert_eq!(
            later.header("mcp-protocol-version"),
            Some("2025-11-25"),
            "{}",
            later.name()
        );
        assert!(
            later.header("mcp-method").is_none(),
            "the header belongs to 2026-07-28"
        );
    }
    assert_eq!(server.names().last().map(String::as_str), Some("DELETE"));
    assert_eq!(server.named("DELETE").len(), 1);
}

/// A session is opened although a member that the bridge only forwards has a number out of range.
#[tokio::test(start_paused = true)]
async fn other_members_of_the_handshake_are_not_parsed() {
    let server = Server::new(|request| match request.name() {
        "initialize" => {
            let result = r#"{"protocolVersion":"2025-11-25","x":1e400}"#;
            let event = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n\n",
                request.id()
            );
            ServerResponse::events(&[&event]).header("mcp-session-id", "s1")
        }
        _ => ServerResponse::json(200, &request.result(json!({}))),
    });
    let mut client = Client::start(&server);
    client
        .request(0, "initialize", json!({ "protocolVersion": "2025-11-25" }))
        .await;
    assert!(client.next_line().await.contains("1e400"));
    client.request(1, "ping", json!({})).await;
    client.next().await;
    let ping = &server.named("ping")[0];
    assert_eq!(ping.header("mcp-session-id"), Some("s1"));
    assert_eq!(ping.header("mcp-protocol-version"), Some("2025-11-25"));
}

/// Messages that the client sends during the handshake are sent after it, in order.
#[tokio::test(start_paused = true)]
async fn messages_wait_for_the_handshake() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut client = Client::start(&server);
    client
        .request(0, "initialize", json!({ "protocolVersion": "2025-11-25" }))
        .await;
    client.notify("notifications/initialized", json!({})).await;
    client.request(1, "tools/list", json!({})).await;
    client.next().await;
    client.next().await;
    let names: Vec<_> = server
        .names()
        .into_iter()
        .filter(|name| name != "GET")
        .collect();
    assert_eq!(
        names,
        ["initialize", "notifications/initialized", "tools/list"]
    );
    assert!(
        server.requests()[1..]
            .iter()
            .all(|request| request.header("mcp-session-id") == Some("s1"))
    );
}

/// E8: a response can have a new session identifier.
#[tokio::test(start_paused = true)]
async fn a_new_identifier_replaces_the_old_one() {
    let server = Server::legacy(|request| {
        ServerResponse::json(200, &request.result(json!({})))
            .header("mcp-session-id", "regenerated")
    });
    let mut client = Client::initialized(&server).await;
    for id in 1..=2 {
        client.request(id, "ping", json!({})).await;
        client.next().await;
    }
    client.close().await;
    let sent: Vec<_> = server
        .named("ping")
        .iter()
        .map(|request| request.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(
        sent,
        [Some("s1".to_owned()), Some("regenerated".to_owned())]
    );
    assert_eq!(
        server.named("DELETE")[0].header("mcp-session-id"),
        Some("regenerated")
    );
}

/// A server without sessions gets no DELETE, and a 404 does not cause a new handshake.
#[tokio::test(start_paused = true)]
async fn a_server_without_sessions() {
    let server = Server::new(|request| match request.name() {
        "initialize" => ServerResponse::json(
            200,
            &request.result(json!({ "protocolVersion": "2025-06-18" })),
        ),
        "GET" => ServerResponse::status(405),
        "tools/list" => ServerResponse::status(404),
        _ => ServerResponse::status(202),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.status".into()));
    client.close().await;
    assert_eq!(server.named("initialize").len(), 1);
    assert!(server.named("DELETE").is_empty());
}

/// E10, E5: after 404, or 400 for a missing session, another session is opened and the request is
/// sent again.
#[tokio::test(start_paused = true)]
async fn a_lost_session_is_opened_again() {
    for rejection in [
        ServerResponse::status(404),
        ServerResponse::json(400, &no_session()),
    ] {
        let mut rejection = Some(rejection);
        let server = Server::legacy(move |request| match request.header("mcp-session-id") {
            Some("s1") => rejection
                .take()
                .unwrap_or_else(|| ServerResponse::status(404)),
            _ => ServerResponse::json(
                200,
                &request.result(json!({ "in": request.header("mcp-session-id") })),
            ),
        });
        let mut client = Client::initialized(&server).await;
        client.request(1, "tools/list", json!({})).await;
        client.request(2, "ping", json!({})).await;
        for _ in 0..2 {
            assert_eq!(client.next().await["result"], json!({ "in": "s2" }));
        }
        assert!(client.close().await.is_empty());
        let opened = server.named("initialize");
        assert_eq!(
            opened.len(),
            2,
            "one for both requests: {:?}",
            server.names()
        );
        assert_eq!(opened[0].body["params"], opened[1].body["params"]);
        assert_eq!(opened[1].header("mcp-session-id"), None);
        assert_eq!(server.named("notifications/initialized").len(), 2);
        assert_eq!(
            server.named("DELETE")[0].header("mcp-session-id"),
            Some("s2")
        );
    }
}

/// A request causes at most one new session.
#[tokio::test(start_paused = true)]
async fn a_session_is_opened_once_for_a_request() {
    let server = Server::legacy(|_| ServerResponse::json(400, &no_session()));
    let mut client = Client::initialized(&server).await;
    client.request(1, "tools/list", json!({})).await;
    let response = client.next().await;
    assert_eq!(response["id"], 1, "the server's own error");
    assert_eq!(response["error"]["code"], -32000, "the server's own error");
    assert_eq!(server.named("initialize").len(), 2);
    assert_eq!(server.named("tools/list").len(), 2);
}

/// Other rejections do not end the session, and their errors get the id of the request.
#[tokio::test(start_paused = true)]
async fn other_rejections_are_forwarded() {
    let server = Server::legacy(|request| match request.name() {
        "a" => ServerResponse::json(
            400,
            &json!({ "jsonrpc": "2.0", "error": { "code": -32602, "message": "m", "data": [1] }, "id": null }),
        ),
        "b" => ServerResponse::status(400),
        "c" => ServerResponse::json(
            404,
            &json!({ "jsonrpc": "2.0", "id": 9, "error": { "code": -32601, "message": "m" } }),
        ),
        "d" => ServerResponse::status(307),
        "e" => ServerResponse::status(202),
        "f" => ServerResponse::json(200, &json!({ "hello": "world" })),
        "g" => ServerResponse::events(&["data: not json\n\n"]),
        _ => ServerResponse::status(500),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "a", json!({})).await;
    assert_eq!(
        client.next().await,
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "m", "data": [1] } })
    );

    client.request(3, "c", json!({})).await;
    assert_eq!(client.next().await["error"]["code"], -32601);
    for (id, name, reason) in [
        (2, "b", "mcp.status"),
        (4, "d", "mcp.redirected"),
        (5, "e", "mcp.answer"),
        (6, "f", "mcp.answer"),
        (7, "g", "mcp.answer"),
        (8, "h", "mcp.status"),
    ] {
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, reason.to_owned()), "{name}");
    }
    assert_eq!(server.named("initialize").len(), 1);
}

/// An interrupted stream is resumed after its last event, after the server's `retry` time.
#[tokio::test(start_paused = true)]
async fn a_stream_is_resumed_after_its_last_event() {
    let mut calls = 0;
    let server = Server::legacy(move |request| {
        calls += 1;
        match (calls, request.header("last-event-id")) {
            (1, None) => {
                let (response, body) = ServerResponse::open();
                body.send(Ok("id: 1\nretry: 7000\ndata:\n\n".into()))
                    .unwrap();
                body.send(Ok(format!(
                    "id: 2\ndata: {}\n\ndata: {{\"half",
                    progress(1)
                )
                .into()))
                    .unwrap();
                body.send(interrupted()).unwrap();
                response
            }
            (2, Some("2")) => ServerResponse::status(503),
            (3, Some("2")) => ServerResponse::status(429),
            (4, Some("2")) => ServerResponse::events(&["id: 3\n\n"]),
            (5, Some("3")) => {
                let result = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
                ServerResponse::messages(&[progress(2), result])
            }
            other => panic!("{other:?}"),
        }
    });
    let mut client = Client::initialized(&server).await;
    let began = Instant::now();
    client
        .request(1, "tools/call", json!({ "name": "slow" }))
        .await;
    assert_eq!(
        [client.next().await, client.next().await],
        [progress(1), progress(2)]
    );
    assert_eq!(client.next().await["result"], json!({}));
    assert!(
        began.elapsed() >= Duration::from_secs(28),
        "four times 7 s: {:?}",
        began.elapsed()
    );

    let resumed = server
        .requests()
        .into_iter()
        .find(|request| request.header("last-event-id").is_some())
        .unwrap();
    assert_eq!(resumed.header("mcp-session-id"), Some("s1"));
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_resumed_is_an_error() {
    let server =
        Server::legacy(
            |request| match (request.name(), request.header("last-event-id")) {
                ("bare", _) => ServerResponse::messages(&[progress(1)]),
                ("taken back", _) => ServerResponse::events(&["id: 1\ndata:\n\nid\ndata:\n\n"]),
                ("fruitless" | "forgotten" | "strange", _) => {
                    ServerResponse::events(&[&format!("id: {}\n\n", request.name())])
                }
                (_, Some("forgotten")) => ServerResponse::status(404),
                (_, Some("strange")) => ServerResponse::json(200, &json!({})),
                (_, Some("fruitless")) => ServerResponse::events(&[]),
                other => panic!("{other:?}"),
            },
        );
    let mut client = Client::initialized(&server).await;
    client.request(1, "bare", json!({})).await;
    assert_eq!(client.next().await, progress(1));
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));

    for (id, name, reason) in [
        (2, "taken back", "mcp.ended"),
        (3, "forgotten", "mcp.session_lost"),
        (4, "strange", "mcp.ended"),
        (5, "fruitless", "mcp.ended"),
    ] {
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, reason.to_owned()), "{name}");
    }
    let tries = server
        .requests()
        .iter()
        .filter(|request| request.header("last-event-id") == Some("fruitless"))
        .count();
    assert_eq!(tries, 8, "the limit of attempts");
}

/// A cancellation is forwarded to the server, and the client gets no response.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_has_no_response() {
    let (response, body) = ServerResponse::open();
    let mut response = Some(response);
    let server = Server::legacy(move |request| match request.name() {
        "slow" => response.take().unwrap(),
        _ => ServerResponse::json(200, &request.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    client
        .notify(
            "notifications/cancelled",
            json!({ "requestId": 1, "reason": "tired" }),
        )
        .await;
    client
        .notify("notifications/cancelled", json!({ "requestId": 77 }))
        .await;
    client.notify("notifications/cancelled", json!({})).await;
    body.closed().await;
    let forwarded = server.named("notifications/cancelled");
    assert_eq!(forwarded.len(), 1);
    assert_eq!(forwarded[0].body["params"]["reason"], "tired");

    client.request(2, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 2);
    assert!(client.close().await.is_empty());
}

/// A cancelled handshake is abandoned without a notification to the server.
#[tokio::test(start_paused = true)]
async fn a_cancelled_handshake_is_abandoned() {
    let server = Server::new(|_| ServerResponse::Never);
    let mut client = Client::start(&server);
    client.request(0, "initialize", json!({})).await;
    settle().await;
    client
        .notify("notifications/cancelled", json!({ "requestId": 0 }))
        .await;
    assert!(client.close().await.is_empty());
    assert_eq!(server.names(), ["initialize"]);
}

/// Requests of the server are forwarded to the client, and its responses to the server.
#[tokio::test(start_paused = true)]
async fn requests_of_the_server_are_forwarded() {
    let (stream, body) = ServerResponse::open();
    let mut stream = Some(stream);
    let server = Server::new(move |request| match request.name() {
        "initialize" => {
            let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
            ServerResponse::json(200, &result).header("mcp-session-id", "s")
        }
        "GET" => stream.take().unwrap_or(ServerResponse::Never),
        _ => ServerResponse::status(202),
    });
    let mut client = Client::initialized(&server).await;
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
    body.send(Ok(format!("id: 1\nretry: 10\ndata: {question}\n\n").into()))
        .unwrap();
    assert_eq!(client.next().await, question);

    let response = json!({ "jsonrpc": "2.0", "id": "q", "result": { "roots": [] } });
    client.send(response.clone()).await;
    settle().await;
    let posted = server
        .requests()
        .into_iter()
        .find(|request| request.body == response)
        .unwrap();
    assert_eq!(posted.header("mcp-session-id"), Some("s"));

    drop(body);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = server.named("GET");
    assert_eq!(again.len(), 2, "the stream is resumed");
    assert_eq!(
        again[1].header("last-event-id"),
        Some("1"),
        "the stream is resumed"
    );
    client.close().await;
}

/// If the server has no GET stream, it is requested only once.
#[tokio::test(start_paused = true)]
async fn an_unsupported_get_stream_is_requested_once() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut client = Client::initialized(&server).await;
    for id in 1..4 {
        client.request(id, "ping", json!({})).await;
        client.next().await;
    }
    assert_eq!(server.named("GET").len(), 1);
}

/// A GET stream is requested again from a server that was busy or had failed, and not before the
/// time that it sets.
#[tokio::test(start_paused = true)]
async fn a_get_stream_of_a_busy_server_is_requested_again() {
    let mut failures = vec![
        ServerResponse::status(429).header("retry-after", "3600"),
        ServerResponse::status(503),
        ServerResponse::status(429),
    ];
    let server = Server::new(move |request| match request.name() {
        "initialize" => {
            let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
            ServerResponse::json(200, &result).header("mcp-session-id", "s")
        }
        "GET" => failures.pop().unwrap_or(ServerResponse::Never),
        _ => ServerResponse::status(202),
    });
    let _client = Client::initialized(&server).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.named("GET").len(), 3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.named("GET").len(), 4);
}
