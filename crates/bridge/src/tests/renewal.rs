//! Lost sessions, and the subscriptions and log level that are restored in the next session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Body, Client, Server, ServerRequest, ServerResponse, settle};

const RESTORED: [&str; 3] = [
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Returns a server that responds with 404 to requests for which `is_lost` returns true.
fn server(mut is_lost: impl FnMut(&ServerRequest) -> bool + Send + 'static) -> Arc<Server> {
    Server::legacy(move |request| match is_lost(request) {
        true => ServerResponse::status(404),
        false => ServerResponse::json(200, &request.result(json!({}))),
    })
}

/// Returns whether a request is a ping in the first session.
fn first_is_lost(request: &ServerRequest) -> bool {
    request.name() == "ping" && request.header("mcp-session-id") == Some("s1")
}

async fn request(client: &mut Client, method: &str, params: Value) {
    static NEXT: AtomicUsize = AtomicUsize::new(100);
    let id = i64::try_from(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap();
    client.request(id, method, params).await;
    let response = client.next().await;
    assert_eq!(response["id"], json!(id), "{response}");
    assert!(response["result"].is_object(), "{response}");
}

async fn subscribe(client: &mut Client, uri: &str) {
    request(
        client,
        "resources/subscribe",
        json!({ "uri": uri, "_meta": { "progressToken": 1 } }),
    )
    .await;
}

/// Returns the subscriptions and log levels that were requested in a session.
fn restored_state(server: &Server, session: &str) -> Vec<(String, Value)> {
    let requests = server.requests().into_iter();
    let of_session = requests.filter(|request| request.header("mcp-session-id") == Some(session));
    let kept = of_session.filter(|request| RESTORED.contains(&request.name()));
    kept.map(|request| (request.name().to_owned(), request.body["params"].clone()))
        .collect()
}

/// E10: subscriptions and the log level are restored in the new session before other requests. The
/// client does not see the responses.
#[tokio::test(start_paused = true)]
async fn subscriptions_outlive_their_session() {
    let server = server(first_is_lost);
    let mut client = Client::initialized(&server).await;
    for uri in ["a:1", "a:2", "a:3", "a:1"] {
        subscribe(&mut client, uri).await;
    }
    request(
        &mut client,
        "resources/unsubscribe",
        json!({ "uri": "a:2" }),
    )
    .await;
    for level in ["debug", "error"] {
        request(&mut client, "logging/setLevel", json!({ "level": level })).await;
    }
    request(&mut client, "ping", json!({})).await;
    assert!(client.close().await.is_empty());

    let mut kept = restored_state(&server, "s2");
    kept.sort_by_key(|(_, params)| params.to_string());
    let expected = [
        ("logging/setLevel", json!({ "level": "error" })),
        ("resources/subscribe", json!({ "uri": "a:1" })),
        ("resources/subscribe", json!({ "uri": "a:3" })),
    ];
    assert_eq!(
        kept,
        expected.map(|(method, params)| (method.to_owned(), params))
    );

    let names = server.names();
    let place = |wanted: &str| names.iter().rposition(|name| name == wanted).unwrap();
    assert!(
        place("initialize") < place("notifications/initialized"),
        "{names:?}"
    );
    assert!(
        place("notifications/initialized") < place("logging/setLevel"),
        "{names:?}"
    );
    assert!(place("resources/subscribe") < place("ping"), "{names:?}");
}

/// A subscription is not restored if the first session rejected it, nor after a later session
/// rejects it.
#[tokio::test(start_paused = true)]
async fn rejected_subscriptions_are_not_restored() {
    let server =
        Server::legacy(
            |request| match (request.name(), request.header("mcp-session-id")) {
                ("ping", Some("s1" | "s2")) => ServerResponse::status(404),
                ("resources/subscribe", session)
                    if request.body["params"]["uri"] == "a:no" || session == Some("s2") =>
                {
                    let error = json!({ "code": -32002, "message": "Resource not found" });
                    ServerResponse::json(
                        200,
                        &json!({ "jsonrpc": "2.0", "id": request.id(), "error": error }),
                    )
                }
                _ => ServerResponse::json(200, &request.result(json!({}))),
            },
        );
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    client
        .request(1, "resources/subscribe", json!({ "uri": "a:no" }))
        .await;
    assert_eq!(client.next().await["error"]["code"], -32002);

    client.request(2, "ping", json!({})).await;
    client.next().await;
    assert_eq!(
        restored_state(&server, "s2"),
        [("resources/subscribe".to_owned(), json!({ "uri": "a:1" }))]
    );
    request(&mut client, "ping", json!({})).await;
    assert!(restored_state(&server, "s3").is_empty());
    assert!(client.close().await.is_empty());
}

/// A new handshake of the client clears its subscriptions.
#[tokio::test(start_paused = true)]
async fn a_new_handshake_begins_without_subscriptions() {
    let server = server(|request| {
        request.name() == "ping" && request.header("mcp-session-id") == Some("s2")
    });
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    client.initialize().await;
    request(&mut client, "ping", json!({})).await;
    assert_eq!(server.named("initialize").len(), 3);
    assert_eq!(server.named("resources/subscribe").len(), 1);
}

/// If the new session does not respond to subscriptions within ten seconds, it is used without
/// them. The client's messages wait meanwhile.
#[tokio::test(start_paused = true)]
async fn a_session_without_responses_to_subscriptions_is_used() {
    let mut kept = Vec::new();
    let server =
        Server::legacy(
            move |request| match (request.name(), request.header("mcp-session-id")) {
                ("ping", Some("s1")) => ServerResponse::status(404),
                ("resources/subscribe", Some("s2")) => {
                    let (response, body) = ServerResponse::open();
                    kept.push(body);
                    response
                }
                _ => ServerResponse::json(
                    200,
                    &request.result(json!({ "in": request.header("mcp-session-id") })),
                ),
            },
        );
    let mut client = Client::initialized(&server).await;
    for number in 0..40 {
        subscribe(&mut client, &format!("a:{number}")).await;
    }
    let began = Instant::now();
    client.request(1, "ping", json!({})).await;
    settle().await;
    client.request(2, "tools/list", json!({})).await;
    for _ in 0..2 {
        assert_eq!(client.next().await["result"], json!({ "in": "s2" }));
    }
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(
        restored_state(&server, "s2").len(),
        16,
        "the limit of concurrent subscriptions"
    );
    assert!(client.close().await.is_empty());
}

/// Messages that the client sends while a session is opened are sent in that session, in order.
#[tokio::test(start_paused = true)]
async fn messages_wait_for_the_new_session() {
    let (response, body) = ServerResponse::open();
    let mut responses = vec![response];
    let server =
        Server::new(
            move |request| match (request.name(), request.header("mcp-session-id")) {
                ("initialize", _) if responses.is_empty() || request.id() == 0 => {
                    let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
                    ServerResponse::json(200, &result).header("mcp-session-id", "first")
                }
                ("initialize", _) => responses.pop().unwrap().header("mcp-session-id", "second"),
                ("GET", _) => ServerResponse::status(405),
                ("ping", Some("first")) => ServerResponse::status(404),
                (name, _) if name.starts_with("notifications/") => ServerResponse::status(202),
                _ => ServerResponse::json(200, &request.result(json!({}))),
            },
        );
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    settle().await;
    client
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    client.request(2, "tools/list", json!({})).await;

    // The request that detected the loss is cancelled, and the others still need the session.
    client
        .notify("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    settle().await;
    let opened = server.named("initialize").pop().unwrap();
    assert_eq!(
        server.names().last().map(String::as_str),
        Some("initialize")
    );

    let result = opened.result(json!({ "protocolVersion": "2025-11-25" }));
    body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
    assert_eq!(client.next().await["id"], 2);
    settle().await;
    let requests = server.requests();
    let second: Vec<_> = requests
        .iter()
        .filter(|request| request.header("mcp-session-id") == Some("second"))
        .map(ServerRequest::name)
        .collect();
    assert_eq!(second[0], "notifications/initialized");

    for name in ["notifications/roots/list_changed", "tools/list"] {
        assert_eq!(
            second.iter().filter(|sent| **sent == name).count(),
            1,
            "{second:?}"
        );
    }
    assert!(client.close().await.is_empty());
}

/// A notification detects a lost session, too, and is sent again. A response to a request of the
/// lost session is not.
#[tokio::test(start_paused = true)]
async fn notifications_detect_a_lost_session() {
    let (stream, questions) = ServerResponse::open();
    let mut stream = Some(stream);
    let server =
        Server::new(
            move |request| match (request.name(), request.header("mcp-session-id")) {
                ("initialize", _) => {
                    let session = if request.id() == 0 { "first" } else { "later" };
                    let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
                    ServerResponse::json(200, &result).header("mcp-session-id", session)
                }
                ("GET", Some("first")) => stream.take().unwrap_or(ServerResponse::Never),
                ("GET", _) => ServerResponse::status(405),
                ("POST" | "notifications/roots/list_changed", Some("first")) => {
                    ServerResponse::status(404)
                }
                _ => ServerResponse::status(202),
            },
        );
    for (name, message, again) in [
        (
            "notifications/roots/list_changed",
            json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
            1,
        ),
        (
            "POST",
            json!({ "jsonrpc": "2.0", "id": "q", "result": {} }),
            0,
        ),
    ] {
        let before = server.requests().len();
        let mut client = Client::initialized(&server).await;
        settle().await;
        client.send(message).await;
        settle().await;
        let requests = server.requests().split_off(before);
        let sent = |session| {
            let wanted = |request: &&ServerRequest| {
                request.name() == name && request.header("mcp-session-id") == Some(session)
            };
            requests.iter().filter(wanted).count()
        };
        assert_eq!(sent("first"), 1, "{name}");
        assert_eq!(sent("later"), again, "{name}");
        assert_eq!(
            requests
                .iter()
                .filter(|request| request.name() == "notifications/initialized")
                .count(),
            2,
            "{name}"
        );
        assert!(client.close().await.is_empty());
    }
    drop(questions);
}

/// A server that restarts while the client waits. Its stream ends, and the next GET is rejected.
struct RestartingServer {
    server: Arc<Server>,
    streams: Arc<parking_lot::Mutex<Vec<Body>>>,
}

impl RestartingServer {
    fn start() -> Self {
        let streams: Arc<parking_lot::Mutex<Vec<Body>>> = Arc::default();
        let opened = streams.clone();
        let mut sessions = 0;
        let server = Server::new(move |request| {
            let latest = format!("s{sessions}");
            match (request.name(), request.header("mcp-session-id")) {
                ("initialize", _) => {
                    sessions += 1;
                    let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
                    ServerResponse::json(200, &result)
                        .header("mcp-session-id", &format!("s{sessions}"))
                }
                // Each session has one stream.
                ("GET", Some(session)) if session == latest && opened.lock().len() < sessions => {
                    let (response, body) = ServerResponse::open();
                    opened.lock().push(body);
                    response
                }
                // E6: the response for an unknown session.
                ("GET", _) => ServerResponse::status(400),
                (name, _) if name.starts_with("notifications/") => ServerResponse::status(202),
                _ => ServerResponse::json(200, &request.result(json!({}))),
            }
        });
        Self { server, streams }
    }

    async fn restart(&self) {
        for stream in self.streams.lock().iter_mut() {
            // Dropping the sender ends the stream.
            *stream = tokio::sync::mpsc::unbounded_channel().0;
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
    }
}

/// E10: for a client with subscriptions, a lost session is replaced without a request of the
/// client.
#[tokio::test(start_paused = true)]
async fn a_waiting_client_gets_another_session() {
    let RestartingServer { server, streams } = &RestartingServer::start();
    let mut client = Client::initialized(server).await;
    subscribe(&mut client, "a:1").await;
    RestartingServer {
        server: server.clone(),
        streams: streams.clone(),
    }
    .restart()
    .await;
    assert_eq!(
        restored_state(server, "s2"),
        [("resources/subscribe".to_owned(), json!({ "uri": "a:1" }))]
    );
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "a:1" } });
    streams.lock()[1]
        .send(Ok(format!("data: {notice}\n\n").into()))
        .unwrap();
    assert_eq!(client.next().await, notice);
}

/// If the server has only forgotten the last event, the session is kept.
#[tokio::test(start_paused = true)]
async fn a_forgotten_event_is_not_a_lost_session() {
    let mut opened = Vec::new();
    let server =
        Server::new(
            move |request| match (request.name(), request.header("last-event-id")) {
                ("initialize", _) => {
                    let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
                    ServerResponse::json(200, &result).header("mcp-session-id", "s")
                }
                ("GET", None) if opened.is_empty() => {
                    opened.push(None);
                    ServerResponse::events(&["id: 1\ndata:\n\n"])
                }
                ("GET", None) => {
                    let (response, body) = ServerResponse::open();
                    opened.push(Some(body));
                    response
                }
                ("GET", _) => ServerResponse::status(400),
                (name, _) if name.starts_with("notifications/") => ServerResponse::status(202),
                _ => ServerResponse::json(200, &request.result(json!({}))),
            },
        );
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.named("initialize").len(), 1);
    assert_eq!(server.named("GET").len(), 3);
}

/// Without subscriptions, a lost session is replaced only at the next request.
#[tokio::test(start_paused = true)]
async fn a_client_without_subscriptions_gets_no_session() {
    let restarting = RestartingServer::start();
    let mut client = Client::initialized(&restarting.server).await;
    settle().await;
    restarting.restart().await;
    assert_eq!(restarting.server.named("initialize").len(), 1);
    assert!(client.close().await.is_empty());
}

/// Without requests of the client, the number of replaced sessions is limited.
#[tokio::test(start_paused = true)]
async fn replaced_sessions_are_limited() {
    let restarting = RestartingServer::start();
    let mut client = Client::initialized(&restarting.server).await;
    subscribe(&mut client, "a:1").await;
    for _ in 0..12 {
        restarting.restart().await;
    }
    assert_eq!(restarting.server.named("initialize").len(), 1 + 8);
    request(&mut client, "ping", json!({})).await;
    restarting.restart().await;
    assert_eq!(
        restarting.server.named("initialize").len(),
        1 + 8,
        "that request succeeded in its session"
    );
    assert!(client.close().await.is_empty());
}

/// Each request of the client resets the limit.
#[tokio::test(start_paused = true)]
async fn requests_reset_the_limit() {
    let restarting = RestartingServer::start();
    let mut client = Client::initialized(&restarting.server).await;
    subscribe(&mut client, "a:1").await;
    for _ in 0..12 {
        restarting.restart().await;
        request(&mut client, "ping", json!({})).await;
    }
    assert_eq!(restarting.server.named("initialize").len(), 1 + 12);
    assert_eq!(restarting.server.named("resources/subscribe").len(), 1 + 12);
    assert!(client.close().await.is_empty());
}

/// If the bridge ends while it opens a session, the session is abandoned.
#[tokio::test(start_paused = true)]
async fn no_session_is_opened_after_the_end() {
    let server = Server::new(|request| match (request.name(), request.id().as_i64()) {
        ("initialize", Some(0)) => ServerResponse::json(
            200,
            &request.result(json!({ "protocolVersion": "2025-11-25" })),
        )
        .header("mcp-session-id", "s"),
        ("initialize", _) => ServerResponse::Never,
        ("ping", _) => ServerResponse::status(404),
        ("GET", _) => ServerResponse::status(405),
        _ => ServerResponse::status(202),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    settle().await;
    let rest = client.stop().await;
    assert_eq!(rest[0]["error"]["data"]["reason"], "bridge.ended");

    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.named("initialize").len(), 2);
    assert_eq!(server.named("notifications/initialized").len(), 1);
}
