//! Servers of 2024-11-05: responses arrive on the stream, and messages stay at its origin.

use super::*;

const MESSAGES: &str = "https://mcp.example.com/messages?session=1";

/// Returns a server whose stream begins with these events, and which accepts messages.
fn server(events: &[String]) -> Arc<FetchFn> {
    let events = events.to_vec();
    FetchFn::new(
        move |request| match (request.method.as_str(), request.url.as_str()) {
            ("GET", RESOURCE) => Some(Reply::events(
                &events.iter().map(String::as_str).collect::<Vec<_>>(),
            )),
            ("POST", MESSAGES) => Some(Reply::status(202)),
            _ => Some(Reply::status(405)),
        },
    )
}

fn endpoint_event(url: &str) -> String {
    format!("event: endpoint\ndata: {url}\n\n")
}

fn response(id: u64, result: Value) -> String {
    format!(
        "event: message\ndata: {}\n\n",
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    )
}

#[tokio::test]
async fn responses_arrive_on_the_stream() {
    let notice = format!(
        "data: {}\n\n",
        json!({ "jsonrpc": "2.0", "method": "notifications/message" })
    );
    let network = server(&[
        endpoint_event("/messages?session=1"),
        response(
            1,
            json!({ "protocolVersion": "2024-11-05", "capabilities": {} }),
        ),
        notice,
        response(2, json!("two")),
        response(3, json!("three")),
    ]);
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    assert_eq!(
        client.initialize().await.unwrap().unwrap()["protocolVersion"],
        "2024-11-05"
    );

    let mut seen = 0;
    let result = client
        .call_with_observer("a", None, &mut |_| seen += 1)
        .await
        .unwrap();
    assert_eq!(result, json!("two"));
    assert_eq!(seen, 1);
    assert_eq!(client.call("b", None).await.unwrap(), "three");
    assert_eq!(
        client.call("c", None).await.unwrap_err().code(),
        "mcp.ended"
    );

    for unavailable in [
        client.open_stream().await.err(),
        client.call_stream("d", None).await.err(),
    ] {
        assert_eq!(unavailable.unwrap().code(), "mcp.not_in_revision");
    }
    client.delete().await.unwrap();
    assert_eq!(
        network.to(MESSAGES).len(),
        5,
        "the handshake is two messages, and only calls are sent"
    );
}

/// A stream that breaks before the message URL is the error. One that ends shows that the server
/// has another transport.
#[tokio::test]
async fn a_stream_without_a_message_url() {
    for (stream, code) in [
        (
            Reply::events(&[": hello\n\n"]).interrupted(),
            "fetch.interrupted",
        ),
        (Reply::events(&[]), "mcp.status"),
    ] {
        let network = FetchFn::new(move |request| match request.method.as_str() {
            "GET" => Some(stream.clone()),
            _ => Some(Reply::status(405)),
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        assert_eq!(client.initialize().await.unwrap_err().code(), code);
    }
}

/// I9: a message URL of another origin gets nothing; the client reports the first rejection.
#[tokio::test]
async fn another_message_url_is_rejected() {
    for url in [
        "https://evil.example/messages",
        "http://mcp.example.com/messages",
        "//evil.example/m",
    ] {
        let network = server(&[endpoint_event(url)]);
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        assert_eq!(
            client.initialize().await.unwrap_err().code(),
            "mcp.status",
            "{url}"
        );
        assert!(
            network
                .requests()
                .iter()
                .all(|request| request.url.as_str() == RESOURCE),
            "{url}"
        );
    }
}
