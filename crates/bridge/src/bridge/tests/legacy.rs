//! The revisions with sessions.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Answer, Client, Server, cut, settle};

fn progress(number: u32) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": number } })
}

fn no_session() -> Value {
    json!({ "jsonrpc": "2.0", "error": { "code": -32000, "message": "No valid session" }, "id": null })
}

#[tokio::test(start_paused = true)]
async fn a_session_from_its_handshake_to_its_end() {
    let server = Server::legacy(|asked| Answer::messages(&[progress(1), progress(2), asked.result(json!({ "n": 3 }))]));
    let mut client = Client::initialized(&server).await;
    client.request(1, "tools/call", json!({ "name": "t" })).await;
    assert_eq!([client.next().await, client.next().await], [progress(1), progress(2)]);
    assert_eq!(client.next().await["result"], json!({ "n": 3 }));
    assert!(client.close().await.is_empty());

    let asked = server.asked();
    assert_eq!(asked[0].header("mcp-session-id"), None);
    assert_eq!(asked[0].header("accept"), Some("application/json, text/event-stream"));
    for later in &asked[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("s1"), "{}", later.name());
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"), "{}", later.name());
        assert!(later.header("mcp-method").is_none(), "the mirror is of 2026-07-28");
    }
    assert_eq!(server.names().last().map(String::as_str), Some("DELETE"));
    assert_eq!(server.named("DELETE").len(), 1);
}

/// What a client sends before its handshake is over goes out after it, and in its order.
#[tokio::test(start_paused = true)]
async fn nothing_overtakes_the_handshake() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let mut client = Client::start(&server);
    client.request(0, "initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    client.notify("notifications/initialized", json!({})).await;
    client.request(1, "tools/list", json!({})).await;
    client.next().await;
    client.next().await;
    let names: Vec<_> = server.names().into_iter().filter(|name| name != "GET").collect();
    assert_eq!(names, ["initialize", "notifications/initialized", "tools/list"]);
    assert!(server.asked()[1..].iter().all(|asked| asked.header("mcp-session-id") == Some("s1")));
}

/// E8: an answer may carry a new identifier.
#[tokio::test(start_paused = true)]
async fn a_new_identifier_replaces_the_old_one() {
    let server =
        Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))).header("mcp-session-id", "regenerated"));
    let mut client = Client::initialized(&server).await;
    for id in 1..=2 {
        client.request(id, "ping", json!({})).await;
        client.next().await;
    }
    client.close().await;
    let sent: Vec<_> =
        server.named("ping").iter().map(|asked| asked.header("mcp-session-id").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("s1".to_owned()), Some("regenerated".to_owned())]);
    assert_eq!(server.named("DELETE")[0].header("mcp-session-id"), Some("regenerated"));
}

/// A server without sessions is asked nothing about them.
#[tokio::test(start_paused = true)]
async fn a_server_without_sessions_has_none_to_end() {
    let server = Server::new(|asked| match asked.name() {
        "initialize" => Answer::json(200, &asked.result(json!({ "protocolVersion": "2025-06-18" }))),
        "GET" => Answer::status(405),
        "tools/list" => Answer::status(404),
        _ => Answer::status(202),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.status".into()));
    client.close().await;
    assert_eq!(server.named("initialize").len(), 1);
    assert!(server.named("DELETE").is_empty());
}

/// E10, E5: a session that the server has forgotten, told by 404 or by our 400, is opened once more; what was refused
/// is sent again.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_opened_once_more() {
    for gone in [Answer::status(404), Answer::json(400, &no_session())] {
        let mut gone = Some(gone);
        let server = Server::legacy(move |asked| match asked.header("mcp-session-id") {
            Some("s1") => gone.take().unwrap_or_else(|| Answer::status(404)),
            _ => Answer::json(200, &asked.result(json!({ "in": asked.header("mcp-session-id") }))),
        });
        let mut client = Client::initialized(&server).await;
        client.request(1, "tools/list", json!({})).await;
        client.request(2, "ping", json!({})).await;
        for _ in 0..2 {
            assert_eq!(client.next().await["result"], json!({ "in": "s2" }));
        }
        assert!(client.close().await.is_empty());
        let opened = server.named("initialize");
        assert_eq!(opened.len(), 2, "one for both: {:?}", server.names());
        assert_eq!(opened[0].body["params"], opened[1].body["params"]);
        assert_eq!(opened[1].header("mcp-session-id"), None);
        assert_eq!(server.named("notifications/initialized").len(), 2);
        assert_eq!(server.named("DELETE")[0].header("mcp-session-id"), Some("s2"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_once_for_a_request_and_no_more() {
    let server = Server::legacy(|_| Answer::json(400, &no_session()));
    let mut client = Client::initialized(&server).await;
    client.request(1, "tools/list", json!({})).await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32000)), "the server's own words");
    assert_eq!(server.named("initialize").len(), 2);
    assert_eq!(server.named("tools/list").len(), 2);
}

/// Other refusals leave the session alone, and their errors get the request's identifier.
#[tokio::test(start_paused = true)]
async fn other_refusals_are_passed_on() {
    let server = Server::legacy(|asked| match asked.name() {
        "a" => Answer::json(
            400,
            &json!({ "jsonrpc": "2.0", "error": { "code": -32602, "message": "m", "data": [1] }, "id": null }),
        ),
        "b" => Answer::status(400),
        "c" => Answer::json(404, &json!({ "jsonrpc": "2.0", "id": 9, "error": { "code": -32601, "message": "m" } })),
        "d" => Answer::status(307),
        "e" => Answer::status(202),
        "f" => Answer::json(200, &json!({ "hello": "world" })),
        "g" => Answer::events(&["data: no json\n\n"]),
        _ => Answer::status(500),
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

/// A stream that breaks off is asked for again behind its last event, after the time that the server named.
#[tokio::test(start_paused = true)]
async fn a_stream_is_resumed_behind_its_last_event() {
    let mut calls = 0;
    let server = Server::legacy(move |asked| {
        calls += 1;
        match (calls, asked.header("last-event-id")) {
            (1, None) => {
                let (answer, body) = Answer::open();
                body.send(Ok("id: 1\nretry: 7000\ndata:\n\n".into())).unwrap();
                body.send(Ok(format!("id: 2\ndata: {}\n\ndata: {{\"half", progress(1)).into())).unwrap();
                body.send(cut()).unwrap();
                answer
            }
            (2, Some("2")) => Answer::status(503),
            (3, Some("2")) => Answer::events(&["id: 3\n\n"]),
            (4, Some("3")) => {
                let result = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
                Answer::messages(&[progress(2), result])
            }
            other => panic!("{other:?}"),
        }
    });
    let mut client = Client::initialized(&server).await;
    let began = Instant::now();
    client.request(1, "tools/call", json!({ "name": "slow" })).await;
    assert_eq!([client.next().await, client.next().await], [progress(1), progress(2)]);
    assert_eq!(client.next().await["result"], json!({}));
    assert!(began.elapsed() >= Duration::from_secs(21), "three times 7 s: {:?}", began.elapsed());
    let resumed = server.asked().into_iter().find(|asked| asked.header("last-event-id").is_some()).unwrap();
    assert_eq!((resumed.header("mcp-session-id"), resumed.header("accept")), (Some("s1"), Some("text/event-stream")));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_resumed_is_an_error() {
    let server = Server::legacy(|asked| match (asked.name(), asked.header("last-event-id")) {
        ("bare", _) => Answer::messages(&[progress(1)]),
        ("taken back", _) => Answer::events(&["id: 1\ndata:\n\nid\ndata:\n\n"]),
        ("fruitless" | "gone" | "strange", _) => Answer::events(&[&format!("id: {}\n\n", asked.name())]),
        (_, Some("gone")) => Answer::status(404),
        (_, Some("strange")) => Answer::json(200, &json!({})),
        (_, Some("fruitless")) => Answer::events(&[]),
        other => panic!("{other:?}"),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "bare", json!({})).await;
    assert_eq!(client.next().await, progress(1));
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    for (id, name, reason) in [
        (2, "taken back", "mcp.ended"),
        (3, "gone", "mcp.session_lost"),
        (4, "strange", "mcp.ended"),
        (5, "fruitless", "mcp.ended"),
    ] {
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, reason.to_owned()), "{name}");
    }
    let tries = server.asked().iter().filter(|asked| asked.header("last-event-id") == Some("fruitless")).count();
    assert_eq!(tries, 8, "and no more");
}

/// The server is told of a cancellation, and its answer is not wanted any more.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_has_no_answer() {
    let (answer, body) = Answer::open();
    let mut answer = Some(answer);
    let server = Server::legacy(move |asked| match asked.name() {
        "slow" => answer.take().unwrap(),
        _ => Answer::json(200, &asked.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    client.notify("notifications/cancelled", json!({ "requestId": 1, "reason": "tired" })).await;
    client.notify("notifications/cancelled", json!({ "requestId": 77 })).await;
    client.notify("notifications/cancelled", json!({})).await;
    body.closed().await;
    let told = server.named("notifications/cancelled");
    assert_eq!((told.len(), &told[0].body["params"]["reason"]), (1, &json!("tired")));
    client.request(2, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 2);
    assert!(client.close().await.is_empty());
}

/// A handshake must not be cancelled: it is given up here, and the server hears nothing.
#[tokio::test(start_paused = true)]
async fn a_cancelled_handshake_is_given_up() {
    let server = Server::new(|_| Answer::Never);
    let mut client = Client::start(&server);
    client.request(0, "initialize", json!({})).await;
    settle().await;
    client.notify("notifications/cancelled", json!({ "requestId": 0 })).await;
    assert!(client.close().await.is_empty());
    assert_eq!(server.names(), ["initialize"]);
}

/// What the server asks goes to the client, and the client's answer to the server.
#[tokio::test(start_paused = true)]
async fn the_server_asks_too() {
    let (stream, body) = Answer::open();
    let mut stream = Some(stream);
    let server = Server::new(move |asked| match asked.name() {
        "initialize" => {
            let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
            Answer::json(200, &result).header("mcp-session-id", "s")
        }
        "GET" => stream.take().unwrap_or(Answer::Never),
        _ => Answer::status(202),
    });
    let mut client = Client::initialized(&server).await;
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
    body.send(Ok(format!("id: 1\nretry: 10\ndata: {question}\n\n").into())).unwrap();
    assert_eq!(client.next().await, question);
    let answer = json!({ "jsonrpc": "2.0", "id": "q", "result": { "roots": [] } });
    client.send(answer.clone()).await;
    settle().await;
    let posted = server.asked().into_iter().find(|asked| asked.body == answer).unwrap();
    assert_eq!(posted.header("mcp-session-id"), Some("s"));

    drop(body);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = server.named("GET");
    assert_eq!((again.len(), again[1].header("last-event-id")), (2, Some("1")), "the stream is asked for again");
    client.close().await;
}

/// A server that has no such stream is not asked for it again.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_offered_is_not_asked_for_again() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let mut client = Client::initialized(&server).await;
    for id in 1..4 {
        client.request(id, "ping", json!({})).await;
        client.next().await;
    }
    assert_eq!(server.named("GET").len(), 1);
}

/// An answer comes as the end of the input comes, and what takes longer is told that it is over.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_leaves_time_for_answers() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |asked| {
        let (answer, body) = Answer::open();
        if asked.name() == "quick" {
            let result = asked.result(json!({}));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
            });
        } else {
            kept.push(body);
        }
        answer
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "quick", json!({})).await;
    client.request(2, "endless", json!({})).await;
    let rest = client.close().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]), (&json!(1), &json!({})));
    assert_eq!((&rest[1]["id"], &rest[1]["error"]["data"]["reason"]), (&json!(2), &json!("bridge.ended")));
    assert_eq!(server.named("DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_session_at_once() {
    let server = Server::legacy(|_| Answer::Never);
    let mut client = Client::initialized(&server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    let began = Instant::now();
    let rest = client.stop().await;
    assert_eq!(rest[0]["error"]["data"]["reason"], "bridge.ended");
    assert!(began.elapsed() < Duration::from_millis(2_500), "{:?}", began.elapsed());
    assert_eq!(server.named("DELETE").len(), 1);
}

/// Nobody reads: the session is ended all the same.
#[tokio::test(start_paused = true)]
async fn a_client_that_vanishes_leaves_no_session() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let client = Client::initialized(&server).await;
    settle().await;
    client.vanish().await;
    assert_eq!(server.named("DELETE").len(), 1);
}

/// A server that is gone when the session ends costs a second.
#[tokio::test(start_paused = true)]
async fn a_session_is_not_ended_forever() {
    let server = Server::new(|asked| match asked.name() {
        "initialize" => Answer::json(200, &asked.result(json!({}))).header("mcp-session-id", "s"),
        "DELETE" => Answer::Never,
        _ => Answer::status(202),
    });
    let mut client = Client::initialized(&server).await;
    settle().await;
    let began = Instant::now();
    client.close().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let _: &Arc<Server> = &server;
}
