//! Events of other types than `message` have no message, but they have a position.

use super::*;

const PING: &str = "event: ping\ndata: 2026-11-22 10:00:00.123456+00:00\n\n";

/// The data of another event is neither parsed nor returned as the result.
#[tokio::test]
async fn only_messages_are_read() {
    let network =
        endpoint(
            |message, request| match (&request.method, message["method"].as_str()) {
                (&Method::POST, Some("tools/call")) => {
                    let other = format!("event: x\ndata: {}\n\n", result(message, json!("other")));
                    let last = format!(
                        "event: message\ndata: {}\n\n",
                        result(message, json!("done"))
                    );
                    Reply::events(&[PING, &other, &last])
                }
                (&Method::GET, _) => {
                    Reply::events(&[PING, "event: x\ndata: {\"a\":1}\n\n", "data: {\"a\":2}\n\n"])
                }
                _ => legacy(message, request),
            },
        );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let mut seen = 0;
    assert_eq!(
        client
            .call_with_observer("tools/call", None, &mut |_| seen += 1)
            .await
            .unwrap(),
        "done"
    );
    assert_eq!(seen, 0);

    let mut stream = client.open_stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap()["a"], 2);
    assert_eq!(stream.next().await.unwrap(), None);
}

/// Events before and with the message URL, and between messages, do not end the stream that all
/// calls share.
#[tokio::test]
async fn the_stream_of_a_session_continues_after_other_events() {
    const MESSAGES: &str = "https://mcp.example.com/messages";
    let response = |id: u64, result: Value| {
        format!(
            "event: message\ndata: {}\n\n",
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        )
    };
    let agreed = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let chunks = [
        PING.to_owned(),
        format!(
            "{PING}event: endpoint\ndata: /messages\n\n{PING}{}",
            response(1, agreed)
        ),
        PING.to_owned(),
        format!(
            "event: x\ndata: {}\n\n",
            json!({ "jsonrpc": "2.0", "id": 2, "result": "other" })
        ),
        response(2, json!("two")),
        format!("{PING}{}", response(3, json!("three"))),
    ];
    let network =
        FetchFn::new(
            move |request| match (request.method.as_str(), request.url.as_str()) {
                ("GET", RESOURCE) => Some(Reply::events(
                    &chunks.iter().map(String::as_str).collect::<Vec<_>>(),
                )),
                ("POST", MESSAGES) => Some(Reply::status(202)),
                _ => Some(Reply::status(405)),
            },
        );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    assert_eq!(client.call("a", None).await.unwrap(), "two");
    assert_eq!(client.call("b", None).await.unwrap(), "three");
}

/// A server can let its client poll while it works: each stream has an event without a message, of
/// any type. The stream is resumed after it. The delay grows to 1 s until a message arrives, even
/// if the server requires none.
#[tokio::test(start_paused = true)]
async fn a_client_polls_while_the_server_works() {
    const POLLS: usize = 40;
    for (event, data) in [("", ""), ("event: ping\n", " {}")] {
        let polls = AtomicUsize::new(0);
        let network =
            endpoint(
                move |message, request| match (&request.method, message["method"].as_str()) {
                    (&Method::POST, Some("tools/call")) => {
                        Reply::events(&[&format!("{event}id: 0\nretry: 0\ndata:{data}\n\n")])
                    }
                    (&Method::GET, _) => {
                        let poll = polls.fetch_add(1, Ordering::Relaxed) + 1;
                        assert_eq!(
                            request.headers[names::LAST_EVENT_ID],
                            (poll - 1).to_string()
                        );
                        match poll {
                            POLLS => Reply::events(&[
                                "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"late\"}\n\n",
                            ]),
                            _ => Reply::events(&[&format!(
                                "{event}id: {poll}\nretry: 0\ndata:{data}\n\n"
                            )]),
                        }
                    }
                    _ => legacy(message, request),
                },
            );
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(
            client.call("tools/call", None).await.unwrap(),
            "late",
            "{event}"
        );
        assert!(
            begun.elapsed().as_secs() >= 30,
            "{event}{:?}",
            begun.elapsed()
        );
    }
}
