//! What a session keeps up for its client, and sessions that are lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Answer, Asked, Body, Client, Server, settle};

const KEPT: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// A server whose sessions last as long as the rule says, which is asked about each request in one.
fn server(mut lost: impl FnMut(&Asked) -> bool + Send + 'static) -> Arc<Server> {
    Server::legacy(move |asked| match lost(asked) {
        true => Answer::status(404),
        false => Answer::json(200, &asked.result(json!({}))),
    })
}

/// A request that only the first session does not know.
fn first_is_lost(asked: &Asked) -> bool {
    asked.name() == "ping" && asked.header("mcp-session-id") == Some("s1")
}

async fn ask(client: &mut Client, method: &str, params: Value) {
    static NEXT: AtomicUsize = AtomicUsize::new(100);
    let id = i64::try_from(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap();
    client.request(id, method, params).await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(id), true), "{answer}");
}

async fn subscribe(client: &mut Client, uri: &str) {
    ask(client, "resources/subscribe", json!({ "uri": uri, "_meta": { "progressToken": 1 } })).await;
}

/// What a session was asked to keep up.
fn asked_to_keep(server: &Server, session: &str) -> Vec<(String, Value)> {
    let asked = server.asked().into_iter();
    let of_session = asked.filter(|asked| asked.header("mcp-session-id") == Some(session));
    let kept = of_session.filter(|asked| KEPT.contains(&asked.name()));
    kept.map(|asked| (asked.name().to_owned(), asked.body["params"].clone())).collect()
}

/// E10: what the client had asked the lost session to keep up, the new one is asked for, before anything else; the client
/// sees nothing of that.
#[tokio::test(start_paused = true)]
async fn subscriptions_outlive_their_session() {
    let server = server(first_is_lost);
    let mut client = Client::initialized(&server).await;
    for uri in ["a:1", "a:2", "a:3", "a:1"] {
        subscribe(&mut client, uri).await;
    }
    ask(&mut client, "resources/unsubscribe", json!({ "uri": "a:2" })).await;
    for level in ["debug", "error"] {
        ask(&mut client, "logging/setLevel", json!({ "level": level })).await;
    }
    ask(&mut client, "ping", json!({})).await;
    assert!(client.close().await.is_empty());

    let mut kept = asked_to_keep(&server, "s2");
    kept.sort_by_key(|(_, params)| params.to_string());
    let expected = [
        ("logging/setLevel", json!({ "level": "error" })),
        ("resources/subscribe", json!({ "uri": "a:1" })),
        ("resources/subscribe", json!({ "uri": "a:3" })),
    ];
    assert_eq!(kept, expected.map(|(method, params)| (method.to_owned(), params)));
    let names = server.names();
    let place = |wanted: &str| names.iter().rposition(|name| name == wanted).unwrap();
    assert!(place("initialize") < place("notifications/initialized"), "{names:?}");
    assert!(place("notifications/initialized") < place("logging/setLevel"), "{names:?}");
    assert!(place("resources/subscribe") < place("ping"), "{names:?}");
}

/// What no session took is not asked for; what a session refuses that another one took is not asked for again.
#[tokio::test(start_paused = true)]
async fn refused_subscriptions_are_forgotten() {
    let server = Server::legacy(|asked| match (asked.name(), asked.header("mcp-session-id")) {
        ("ping", Some("s1" | "s2")) => Answer::status(404),
        ("resources/subscribe", session) if asked.body["params"]["uri"] == "a:no" || session == Some("s2") => {
            let error = json!({ "code": -32002, "message": "Resource not found" });
            Answer::json(200, &json!({ "jsonrpc": "2.0", "id": asked.id(), "error": error }))
        }
        _ => Answer::json(200, &asked.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    client.request(1, "resources/subscribe", json!({ "uri": "a:no" })).await;
    assert_eq!(client.next().await["error"]["code"], -32002);
    client.request(2, "ping", json!({})).await;
    client.next().await;
    assert_eq!(asked_to_keep(&server, "s2"), [("resources/subscribe".to_owned(), json!({ "uri": "a:1" }))]);
    ask(&mut client, "ping", json!({})).await;
    assert!(asked_to_keep(&server, "s3").is_empty());
    assert!(client.close().await.is_empty());
}

/// A client that makes its handshake anew subscribes anew.
#[tokio::test(start_paused = true)]
async fn a_new_handshake_begins_without_subscriptions() {
    let server = server(|asked| asked.name() == "ping" && asked.header("mcp-session-id") == Some("s2"));
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    client.initialize().await;
    ask(&mut client, "ping", json!({})).await;
    assert_eq!(server.named("initialize").len(), 3);
    assert_eq!(server.named("resources/subscribe").len(), 1);
}

/// A new session that does not answer costs ten seconds, and what the client sends meanwhile waits.
#[tokio::test(start_paused = true)]
async fn a_session_that_takes_no_subscriptions_is_used_without_them() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |asked| match (asked.name(), asked.header("mcp-session-id")) {
        ("ping", Some("s1")) => Answer::status(404),
        ("resources/subscribe", Some("s2")) => {
            let (answer, body) = Answer::open();
            kept.push(body);
            answer
        }
        _ => Answer::json(200, &asked.result(json!({ "in": asked.header("mcp-session-id") }))),
    });
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
    assert_eq!(asked_to_keep(&server, "s2").len(), 16, "so many at once");
    assert!(client.close().await.is_empty());
}

/// What the client sends while a session is being opened goes to that session, and in its order.
#[tokio::test(start_paused = true)]
async fn what_is_sent_meanwhile_waits_for_the_session() {
    let (answer, body) = Answer::open();
    let mut answers = vec![answer];
    let server = Server::new(move |asked| match (asked.name(), asked.header("mcp-session-id")) {
        ("initialize", _) if answers.is_empty() || asked.id() == 0 => {
            let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
            Answer::json(200, &result).header("mcp-session-id", "first")
        }
        ("initialize", _) => answers.pop().unwrap().header("mcp-session-id", "second"),
        ("GET", _) => Answer::status(405),
        ("ping", Some("first")) => Answer::status(404),
        (name, _) if name.starts_with("notifications/") => Answer::status(202),
        _ => Answer::json(200, &asked.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    settle().await;
    client.notify("notifications/roots/list_changed", json!({})).await;
    client.request(2, "tools/list", json!({})).await;
    // The request that found out is given up; the others still need the session.
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    settle().await;
    let opened = server.named("initialize").pop().unwrap();
    assert_eq!(server.names().last().map(String::as_str), Some("initialize"));
    let result = opened.result(json!({ "protocolVersion": "2025-11-25" }));
    body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
    assert_eq!(client.next().await["id"], 2);
    settle().await;
    let asked = server.asked();
    let second: Vec<_> =
        asked.iter().filter(|asked| asked.header("mcp-session-id") == Some("second")).map(Asked::name).collect();
    assert_eq!(second[0], "notifications/initialized");
    for name in ["notifications/roots/list_changed", "tools/list"] {
        assert_eq!(second.iter().filter(|sent| **sent == name).count(), 1, "{second:?}");
    }
    assert!(client.close().await.is_empty());
}

/// A notification finds out as a request does, and is sent again; an answer to the lost session's question is not.
#[tokio::test(start_paused = true)]
async fn notifications_find_out_too() {
    let (stream, questions) = Answer::open();
    let mut stream = Some(stream);
    let server = Server::new(move |asked| match (asked.name(), asked.header("mcp-session-id")) {
        ("initialize", _) => {
            let session = if asked.id() == 0 { "first" } else { "later" };
            let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
            Answer::json(200, &result).header("mcp-session-id", session)
        }
        ("GET", Some("first")) => stream.take().unwrap_or(Answer::Never),
        ("GET", _) => Answer::status(405),
        ("POST" | "notifications/roots/list_changed", Some("first")) => Answer::status(404),
        _ => Answer::status(202),
    });
    for (name, message, again) in [
        (
            "notifications/roots/list_changed",
            json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
            1,
        ),
        ("POST", json!({ "jsonrpc": "2.0", "id": "q", "result": {} }), 0),
    ] {
        let before = server.asked().len();
        let mut client = Client::initialized(&server).await;
        settle().await;
        client.send(message).await;
        settle().await;
        let asked = server.asked().split_off(before);
        let sent = |session| {
            let wanted = |asked: &&Asked| asked.name() == name && asked.header("mcp-session-id") == Some(session);
            asked.iter().filter(wanted).count()
        };
        assert_eq!((sent("first"), sent("later")), (1, again), "{name}");
        assert_eq!(asked.iter().filter(|asked| asked.name() == "notifications/initialized").count(), 2, "{name}");
        assert!(client.close().await.is_empty());
    }
    drop(questions);
}

/// A server that restarts while the client only waits: its stream ends, and is refused then.
struct Restarting {
    server: Arc<Server>,
    streams: Arc<std::sync::Mutex<Vec<Body>>>,
}

impl Restarting {
    fn start() -> Self {
        let streams: Arc<std::sync::Mutex<Vec<Body>>> = Arc::default();
        let (opened, mut sessions) = (streams.clone(), 0);
        let server = Server::new(move |asked| {
            let latest = format!("s{sessions}");
            match (asked.name(), asked.header("mcp-session-id")) {
                ("initialize", _) => {
                    sessions += 1;
                    let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
                    Answer::json(200, &result).header("mcp-session-id", &format!("s{sessions}"))
                }
                // A stream is the last thing that a session is good for.
                ("GET", Some(session)) if session == latest && opened.lock().unwrap().len() < sessions => {
                    let (answer, body) = Answer::open();
                    opened.lock().unwrap().push(body);
                    answer
                }
                // E6: it is refused so, in plain text.
                ("GET", _) => Answer::status(400),
                (name, _) if name.starts_with("notifications/") => Answer::status(202),
                _ => Answer::json(200, &asked.result(json!({}))),
            }
        });
        Self { server, streams }
    }

    async fn restart(&self) {
        for stream in self.streams.lock().unwrap().iter_mut() {
            // Whoever held the other end reads the end of the stream.
            *stream = tokio::sync::mpsc::unbounded_channel().0;
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
    }
}

/// E10: a client that has subscribed and only waits hears on, without asking anything.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_gets_another_session() {
    let Restarting { server, streams } = &Restarting::start();
    let mut client = Client::initialized(server).await;
    subscribe(&mut client, "a:1").await;
    Restarting { server: server.clone(), streams: streams.clone() }.restart().await;
    assert_eq!(asked_to_keep(server, "s2"), [("resources/subscribe".to_owned(), json!({ "uri": "a:1" }))]);
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "a:1" } });
    streams.lock().unwrap()[1].send(Ok(format!("data: {notice}\n\n").into())).unwrap();
    assert_eq!(client.next().await, notice);
}

/// A server that knows the session and has forgotten the event keeps its session.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_forgotten_is_no_lost_session() {
    let mut opened = Vec::new();
    let server = Server::new(move |asked| match (asked.name(), asked.header("last-event-id")) {
        ("initialize", _) => {
            let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
            Answer::json(200, &result).header("mcp-session-id", "s")
        }
        ("GET", None) if opened.is_empty() => {
            opened.push(None);
            Answer::events(&["id: 1\ndata:\n\n"])
        }
        ("GET", None) => {
            let (answer, body) = Answer::open();
            opened.push(Some(body));
            answer
        }
        ("GET", _) => Answer::status(400),
        (name, _) if name.starts_with("notifications/") => Answer::status(202),
        _ => Answer::json(200, &asked.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    subscribe(&mut client, "a:1").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((server.named("initialize").len(), server.named("GET").len()), (1, 3));
}

/// One that has subscribed to nothing gets it with its next request.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_nothing_gets_no_session() {
    let restarting = Restarting::start();
    let mut client = Client::initialized(&restarting.server).await;
    settle().await;
    restarting.restart().await;
    assert_eq!(restarting.server.named("initialize").len(), 1);
    assert!(client.close().await.is_empty());
}

/// A server whose sessions never last is not asked for them forever by a client that asks nothing.
#[tokio::test(start_paused = true)]
async fn sessions_are_not_opened_forever() {
    let restarting = Restarting::start();
    let mut client = Client::initialized(&restarting.server).await;
    subscribe(&mut client, "a:1").await;
    for _ in 0..12 {
        restarting.restart().await;
    }
    assert_eq!(restarting.server.named("initialize").len(), 1 + 8);
    ask(&mut client, "ping", json!({})).await;
    restarting.restart().await;
    assert_eq!(restarting.server.named("initialize").len(), 1 + 8, "the session was not refused to that request");
    assert!(client.close().await.is_empty());
}

/// A client that asks something now and then gets as many as it needs.
#[tokio::test(start_paused = true)]
async fn a_client_that_asks_is_not_given_up() {
    let restarting = Restarting::start();
    let mut client = Client::initialized(&restarting.server).await;
    subscribe(&mut client, "a:1").await;
    for _ in 0..12 {
        restarting.restart().await;
        ask(&mut client, "ping", json!({})).await;
    }
    assert_eq!(restarting.server.named("initialize").len(), 1 + 12);
    assert_eq!(restarting.server.named("resources/subscribe").len(), 1 + 12);
    assert!(client.close().await.is_empty());
}

/// A bridge that ends while a session is being opened opens none.
#[tokio::test(start_paused = true)]
async fn no_session_is_opened_behind_the_end() {
    let server = Server::new(|asked| match (asked.name(), asked.id().as_i64()) {
        ("initialize", Some(0)) => {
            Answer::json(200, &asked.result(json!({ "protocolVersion": "2025-11-25" }))).header("mcp-session-id", "s")
        }
        ("initialize", _) => Answer::Never,
        ("ping", _) => Answer::status(404),
        ("GET", _) => Answer::status(405),
        _ => Answer::status(202),
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
