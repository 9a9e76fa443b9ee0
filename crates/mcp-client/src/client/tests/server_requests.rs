//! Requests of the server to the client get a response.

use super::*;

/// A handler that accepts every elicitation and supports no other request.
pub(super) struct AcceptingHandler;

impl ServerRequestHandler for AcceptingHandler {
    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        _: &'a Value,
    ) -> portcullis_discovery::BoxFuture<'a, Option<Value>> {
        Box::pin(
            async move { (method == "elicitation/create").then(|| json!({ "action": "accept" })) },
        )
    }
}

/// Returns the messages with this method that were sent.
pub(super) fn sent(network: &FetchFn, method: &str) -> Vec<Value> {
    let messages = network
        .to(RESOURCE)
        .into_iter()
        .filter_map(|request| serde_json::from_slice(&request.body).ok());
    messages
        .filter(|message: &Value| message["method"] == method)
        .collect()
}

/// A result that requires input is followed by another request with the responses and the server's
/// unchanged state. Without a handler, it is returned.
#[tokio::test]
async fn required_input_is_sent() {
    let network = || {
        endpoint(|message, _| {
            let params = &message["params"];
            let asks = |state: Value| {
                json!({
                    "resultType": "input_required", "requestState": state,
                    "inputRequests": { "who": { "method": "elicitation/create", "params": {} } },
                })
            };
            let response = match (
                &params["inputResponses"]["who"]["action"],
                params["requestState"].as_str(),
            ) {
                (Value::Null, None) if params.get("inputResponses").is_none() => {
                    asks(json!("s 1 "))
                }
                (action, Some("s 1 ")) if action == "accept" => {
                    json!({ "resultType": "input_required", "inputRequests": {} })
                }
                _ => json!({ "resultType": "complete", "content": [] }),
            };
            Reply::json(200, result(message, response))
        })
    };
    let params = || Some(json!({ "name": "t", "arguments": {} }));
    let requesting = network();
    let user = ScriptedUser::consents();
    let client_of = |network: &Arc<FetchFn>| client(network, &user, Revision::V2026_07_28);
    let completed = client_of(&requesting)
        .with_request_handler(Arc::new(AcceptingHandler))
        .call("tools/call", params())
        .await
        .unwrap();
    assert_eq!(completed["resultType"], "complete");

    // The first request is sent twice: without and with a token.
    let calls = sent(&requesting, "tools/call");
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[2]["params"]["requestState"], "s 1 ");
    assert!(calls[3]["params"].get("requestState").is_none());
    assert_ne!(calls[1]["id"], calls[2]["id"]);

    let capabilities = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({ "elicitation": {} }));

    let unhandled = client_of(&network())
        .call("tools/call", params())
        .await
        .unwrap();
    assert_eq!(unhandled["resultType"], "input_required");

    let endless = endpoint(|message, _| {
        Reply::json(
            200,
            result(
                message,
                json!({ "resultType": "input_required", "inputRequests": {} }),
            ),
        )
    });
    let error = client_of(&endless)
        .with_request_handler(Arc::new(AcceptingHandler))
        .call("tools/call", params())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "mcp.rounds");

    // Without a token, with it, and after each of 16 rounds.
    assert_eq!(sent(&endless, "tools/call").len(), 2 + 16);
}

/// A request is observed before it is answered, which can wait for the user.
#[tokio::test]
async fn requests_are_observed_before_they_are_answered() {
    let network = endpoint(|message, request| {
        match (&request.method, message["method"].as_str()) {
            (&Method::POST, Some("tools/call")) => Reply::events(&[
                "data: {\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\"}\n\n",
            ]),
            (&Method::POST, None) => Reply::status(500),
            _ => legacy(message, request),
        }
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    let client = client.with_request_handler(Arc::new(AcceptingHandler));
    client.initialize().await.unwrap();
    let mut observed = Vec::new();
    let response = client
        .call_with_observer("tools/call", None, &mut |message| observed.push(message))
        .await;
    assert_eq!(
        response.unwrap_err().code(),
        "mcp.status",
        "the server does not accept the answer"
    );
    assert_eq!(observed.len(), 1);
}

/// Requests of a legacy server on the GET stream get a response and are observed until the stream
/// ends.
#[tokio::test]
async fn requests_on_the_get_stream_get_a_response() {
    let network = endpoint(|message, request| {
        match (&request.method, message["method"].as_str()) {
            (&Method::GET, _) => Reply::events(&[
                "data: {\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\"}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n",
            ]),
            (&Method::POST, None) => Reply::status(202),
            _ => legacy(message, request),
        }
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25)
        .with_request_handler(Arc::new(AcceptingHandler));
    client.initialize().await.unwrap();
    let stream = client.open_stream().await.unwrap();
    let mut shown = 0;
    client
        .answer_stream(stream, &mut |_| shown += 1)
        .await
        .unwrap();
    assert_eq!(shown, 2);

    let messages = network
        .to(RESOURCE)
        .into_iter()
        .filter_map(|request| serde_json::from_slice(&request.body).ok());
    let responses: Vec<Value> = messages
        .filter(|message: &Value| message.get("method").is_none())
        .collect();
    assert_eq!(
        responses,
        [json!({ "jsonrpc": "2.0", "id": "e", "result": { "action": "accept" } })]
    );
}

/// Requests of a legacy server during a call get a response. Unsupported ones get an error.
#[tokio::test]
async fn requests_during_a_call_get_a_response() {
    let network = endpoint(|message, request| match message["method"].as_str() {
        Some("tools/call") => {
            let asks =
                |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
            // Each side assigns its own ids, so this one can equal the id of the call.
            let of_call = message["id"].as_u64().unwrap();
            let events = [
                asks(70, "elicitation/create"),
                asks(71, "roots/list"),
                asks(of_call, "ping"),
            ];
            let events: Vec<_> = events
                .into_iter()
                .chain([result(message, json!("done"))])
                .collect();
            let events: Vec<_> = events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
        }
        None => Reply::status(202),
        _ => legacy(message, request),
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25)
        .with_request_handler(Arc::new(AcceptingHandler));
    client.initialize().await.unwrap();
    let mut shown = 0;
    assert_eq!(
        client
            .call_with_observer("tools/call", None, &mut |_| shown += 1)
            .await
            .unwrap(),
        "done"
    );
    assert_eq!(shown, 3);

    let messages = network
        .to(RESOURCE)
        .into_iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap());
    let responses: Vec<Value> = messages
        .filter(|message: &Value| message.get("method").is_none())
        .collect();
    assert_eq!(responses[0]["result"], json!({ "action": "accept" }));
    assert_eq!(responses[1]["id"], 71);
    assert_eq!(responses[1]["error"]["code"], -32601);
    assert_eq!(responses[2]["result"], json!({}));
}
