use portcullis_metadata::Scopes;
use serde_json::json;

use super::*;
use crate::{
    AuthorizerSettings,
    testing::{Network, Person, RESOURCE, Reply, Still, TOKEN, well_behaved},
};

const SESSION: HeaderName = names::SESSION;

fn client(network: &Arc<Network>, person: &Arc<Person>, revision: Revision) -> McpClient {
    let authorizer = Authorizer::new(network.clone(), person.clone(), Arc::new(Still), AuthorizerSettings::default());
    let settings = McpSettings { revision, ..McpSettings::default() };
    let start = StartUrl::parse(RESOURCE).unwrap();
    McpClient::new(start, network.clone(), Some(Arc::new(authorizer)), settings)
}

/// The protected endpoint, answered by `answer`, with all that surrounds it well-behaved.
fn endpoint(answer: impl Fn(&Value, &FetchRequest) -> Reply + Send + Sync + 'static) -> Arc<Network> {
    Network::new(move |request| {
        well_behaved(request).or_else(|| {
            let message = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            (request.url.as_str() == RESOURCE).then(|| answer(&message, request))
        })
    })
}

fn result(message: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

/// A legacy server with one session.
fn legacy(message: &Value, request: &FetchRequest) -> Reply {
    let in_session = request.headers.get(SESSION).is_some_and(|value| value == "s-1");
    match (&request.method, message["method"].as_str()) {
        (&Method::POST, Some("initialize")) => {
            let agreed = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
            Reply::json(200, result(message, agreed)).header(SESSION, "s-1")
        }
        _ if !in_session || request.headers[names::PROTOCOL_VERSION] != "2025-06-18" => Reply::status(400),
        (&Method::POST, Some("tools/call")) => {
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
            let answer = result(message, json!({ "content": [] }));
            Reply::events(&[
                ": hello\n\nid: 1\ndata:\n\ndata: ",
                &progress.to_string(),
                "\n\ndata: ",
                &format!("{answer}\n\n"),
            ])
        }
        (&Method::POST, Some(_)) if message.get("id").is_none() => Reply::status(202),
        (&Method::POST, Some(_)) => Reply::json(200, result(message, json!("ok"))),
        (&Method::GET, _) => Reply::events(&["data: {\"a\"", ":1}\n\n", "data: {\"a\":2}\n\ndata: half"]),
        _ => Reply::status(204),
    }
}

/// I9: one authorization for a whole legacy session; the token is in the header of every request after it.
#[tokio::test]
async fn a_legacy_session_from_beginning_to_end() {
    let (network, person) = (endpoint(legacy), Person::consents());
    let client = client(&network, &person, Revision::V2025_11_25);
    let agreed = client.initialize().await.unwrap().unwrap();
    assert_eq!(agreed["protocolVersion"], "2025-06-18");

    assert_eq!(client.call("ping", None).await.unwrap(), "ok");
    let mut observed = Vec::new();
    let params = json!({ "name": "add" });
    let answer = client.call_observed("tools/call", Some(params), &mut |message| observed.push(message)).await;
    assert_eq!(answer.unwrap(), json!({ "content": [] }));
    assert_eq!(observed.len(), 1);
    client.notify("notifications/cancelled", None).await.unwrap();

    let mut stream = client.open_stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap()["a"], 1);
    assert_eq!(stream.next().await.unwrap().unwrap()["a"], 2);
    assert!(stream.next().await.unwrap().is_none());

    client.delete().await.unwrap();
    assert_eq!(client.delete().await.unwrap_err().code(), "mcp.not_initialized");

    let sent = network.to(RESOURCE);
    assert!(!sent[0].headers.contains_key(header::AUTHORIZATION));
    assert!(sent[1..].iter().all(|request| request.headers[header::AUTHORIZATION] == "Bearer hush"));
    assert_eq!(person.visits(), 1);
    let others = network.requests().into_iter().filter(|request| request.url.as_str() != RESOURCE);
    assert!(others.into_iter().all(|request| !request.headers.contains_key(header::AUTHORIZATION)));
}

#[tokio::test]
async fn a_new_session_identifier_replaces_the_old_one() {
    let network = endpoint(|message, request| match message["method"].as_str() {
        Some("initialize") => legacy(message, request),
        _ => {
            Reply::json(200, result(message, json!(request.headers[SESSION].to_str().unwrap()))).header(SESSION, "s-2")
        }
    });
    let client = client(&network, &Person::consents(), Revision::V2025_11_25);
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
    let client = client(&network, &Person::consents(), Revision::V2026_07_28);
    assert_eq!(client.initialize().await.unwrap(), None);
    for _ in 0..2 {
        assert_eq!(client.call("tools/call", Some(json!({ "name": "add" }))).await.unwrap(), 3);
    }
    assert!(network.to(RESOURCE).iter().all(|request| !request.headers.contains_key(SESSION)));
    assert_eq!(client.open_stream().await.unwrap_err().code(), "mcp.not_in_revision");
    assert_eq!(client.delete().await.unwrap_err().code(), "mcp.not_in_revision");
}

/// I9: a refused token is forgotten, and authorization happens once more, and not twice, for one request.
#[tokio::test]
async fn a_refused_token_leads_to_one_new_authorization() {
    let network = Network::new(|request| {
        let sent = request.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        match request.url.as_str() {
            RESOURCE if sent == Some(b"Bearer old") => Some(Reply::challenge()),
            RESOURCE if sent.is_some() => {
                let message: Value = serde_json::from_slice(&request.body).unwrap();
                Some(Reply::json(200, result(&message, json!("ok"))))
            }
            _ => well_behaved(request),
        }
    });
    let person = Person::consents();
    let client = client(&network, &person, Revision::V2026_07_28);
    client.set_token(token(RESOURCE, "old"));
    assert_eq!(client.call("ping", None).await.unwrap(), "ok");
    assert_eq!((person.visits(), client.token().unwrap().access_token().secret()), (1, "hush"));

    let never = Network::new(|request| match request.url.as_str() {
        RESOURCE => Some(Reply::challenge()),
        _ => well_behaved(request),
    });
    let person = Person::consents();
    let client = super::tests::client(&never, &person, Revision::V2026_07_28);
    client.set_token(token(RESOURCE, "old"));
    assert_eq!(client.call("ping", None).await.unwrap_err().code(), "mcp.unauthorized");
    assert_eq!((person.visits(), never.to(TOKEN).len(), never.to(RESOURCE).len()), (1, 1, 2));
    assert!(client.token().is_none());
}

#[tokio::test]
async fn requests_under_way_share_one_authorization() {
    let network = endpoint(|message, _| Reply::json(200, result(message, json!("ok"))));
    let person = Person::consents();
    let client = client(&network, &person, Revision::V2026_07_28);
    let (one, other) = tokio::join!(client.call("ping", None), client.call("ping", None));
    assert_eq!((one.unwrap(), other.unwrap(), person.visits()), (json!("ok"), json!("ok"), 1));
}

/// I9: a redirect is not followed, with or without a token.
#[tokio::test]
async fn a_redirect_is_an_error() {
    for status in [301, 302, 303, 307, 308] {
        let network = endpoint(move |_, _| Reply::status(status).header(header::LOCATION, "https://evil.example/"));
        let client = client(&network, &Person::consents(), Revision::V2026_07_28);
        assert_eq!(client.call("ping", None).await.unwrap_err().code(), "mcp.redirected");
        assert!(network.requests().iter().all(|request| request.url.host_str() != Some("evil.example")));
    }
}

/// I9: a token of another origin is not sent.
#[tokio::test]
async fn a_token_of_another_origin_is_not_sent() {
    let network = Network::new(|_| Some(Reply::status(500)));
    let client = client(&network, &Person::consents(), Revision::V2026_07_28);
    client.set_token(token("https://other.example/mcp", "foreign"));
    assert_eq!(client.call("ping", None).await.unwrap_err().code(), "mcp.status");
    assert!(!network.requests()[0].headers.contains_key(header::AUTHORIZATION));
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let network = endpoint(|message, _| match message["method"].as_str().unwrap() {
        "scope" => {
            Reply::status(403).header(header::WWW_AUTHENTICATE, r#"Bearer error="insufficient_scope", scope="a b""#)
        }
        "unknown" => Reply::json(
            404,
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no\u{1b}[1m" } }),
        ),
        "unnamed" => {
            Reply::json(200, json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "m" } }))
        }
        "html" => Reply::status(200).header(header::CONTENT_TYPE, "text/html"),
        "other" => Reply::json(200, json!({ "jsonrpc": "2.0", "id": 999, "result": 1 })),
        "ended" => Reply::events(&["data: {\"method\":\"a\"}\n\n"]),
        "broken" => Reply::events(&["data: {\n\n"]),
        "large" => Reply::json(200, "x".repeat(5 * 1024 * 1024)),
        "large event" => Reply::events(&[&format!("data: {}", "x".repeat(5 * 1024 * 1024))]),
        _ => Reply::status(503),
    });
    let client = client(&network, &Person::consents(), Revision::V2026_07_28);
    for (method, code) in [
        ("scope", "mcp.insufficient_scope"),
        ("unknown", "mcp.rpc"),
        ("unnamed", "mcp.rpc"),
        ("html", "mcp.answer"),
        ("other", "mcp.ended"),
        ("ended", "mcp.ended"),
        ("broken", "mcp.answer"),
        ("large", "mcp.too_large"),
        ("large event", "stream.event_too_large"),
        ("down", "mcp.status"),
    ] {
        let error = client.call(method, None).await.unwrap_err();
        assert_eq!(error.code(), code, "{method}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

#[tokio::test]
async fn without_an_authorizer_a_challenge_is_an_error() {
    let network = Network::new(well_behaved);
    let start = StartUrl::parse(RESOURCE).unwrap();
    let client = McpClient::new(start, network.clone(), None, McpSettings::default());
    assert_eq!(client.initialize().await.unwrap_err().code(), "mcp.unauthorized");
    assert_eq!(network.requests().len(), 1);
}

#[tokio::test]
async fn a_server_of_an_unknown_revision_is_refused() {
    for version in ["2024-11-05", "2026-07-28", ""] {
        let network =
            endpoint(move |message, _| Reply::json(200, result(message, json!({ "protocolVersion": version }))));
        let client = client(&network, &Person::consents(), Revision::V2025_11_25);
        assert_eq!(client.initialize().await.unwrap_err().code(), "mcp.revision");
    }
}

fn token(resource: &str, text: &str) -> Arc<ResourceToken> {
    use portcullis_metadata::{AccessToken, Issuer, ResourceUri, TokenResponse, UnixTime};

    let purpose = crate::token::Purpose {
        start: &StartUrl::parse(resource).unwrap(),
        issuer: &Issuer::parse(crate::testing::ISSUER).unwrap(),
        resource: &ResourceUri::parse(resource).unwrap(),
        client_id: None,
        asked: &Scopes::empty(),
        binding: None,
    };
    let response = TokenResponse::bearer(AccessToken::new(text));
    Arc::new(ResourceToken::new(response, purpose, UnixTime::from_secs(0)).unwrap())
}

/// Agrees to every elicitation and knows nothing else.
struct Agreeable;

impl ServerRequests for Agreeable {
    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    fn answer<'a>(&'a self, method: &'a str, _: &'a Value) -> portcullis_discovery::BoxFuture<'a, Option<Value>> {
        Box::pin(async move { (method == "elicitation/create").then(|| json!({ "action": "accept" })) })
    }
}

fn sent(network: &Network, method: &str) -> Vec<Value> {
    let messages = network.to(RESOURCE).into_iter().map(|request| serde_json::from_slice(&request.body).unwrap());
    messages.filter(|message: &Value| message["method"] == method).collect()
}

/// A result that asks for input is answered in another request, with the server's state as it came; without anybody
/// to answer it is the result.
#[tokio::test]
async fn a_server_that_asks_for_input_gets_it() {
    let network = || {
        endpoint(|message, _| {
            let params = &message["params"];
            let asks = |state: Value| {
                json!({
                    "resultType": "input_required", "requestState": state,
                    "inputRequests": { "who": { "method": "elicitation/create", "params": {} } },
                })
            };
            let answer = match (&params["inputResponses"]["who"]["action"], params["requestState"].as_str()) {
                (Value::Null, None) if params.get("inputResponses").is_none() => asks(json!("s 1 ")),
                (action, Some("s 1 ")) if action == "accept" => {
                    json!({ "resultType": "input_required", "inputRequests": {} })
                }
                _ => json!({ "resultType": "complete", "content": [] }),
            };
            Reply::json(200, result(message, answer))
        })
    };
    let params = || Some(json!({ "name": "t", "arguments": {} }));
    let (asking, person) = (network(), Person::consents());
    let client_of = |network: &Arc<Network>| client(network, &person, Revision::V2026_07_28);
    let answered = client_of(&asking).answering(Arc::new(Agreeable)).call("tools/call", params()).await.unwrap();
    assert_eq!(answered["resultType"], "complete");
    // The first goes out twice: without a token and with it.
    let calls = sent(&asking, "tools/call");
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[2]["params"]["requestState"], "s 1 ");
    assert!(calls[3]["params"].get("requestState").is_none());
    assert_ne!(calls[1]["id"], calls[2]["id"]);
    let capabilities = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({ "elicitation": {} }));

    let alone = client_of(&network()).call("tools/call", params()).await.unwrap();
    assert_eq!(alone["resultType"], "input_required");

    let endless = endpoint(|message, _| {
        Reply::json(200, result(message, json!({ "resultType": "input_required", "inputRequests": {} })))
    });
    let error = client_of(&endless).answering(Arc::new(Agreeable)).call("tools/call", params()).await.unwrap_err();
    assert_eq!(error.code(), "mcp.rounds");
}

/// A legacy server's requests in the course of a call are answered: those that are known, the others with an error.
#[tokio::test]
async fn a_legacy_servers_requests_are_answered() {
    let network = endpoint(|message, request| match message["method"].as_str() {
        Some("tools/call") => {
            let asks = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
            let events = [asks(70, "elicitation/create"), asks(71, "roots/list"), asks(72, "ping")];
            let events: Vec<_> = events.into_iter().chain([result(message, json!("done"))]).collect();
            let events: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
        }
        None => Reply::status(202),
        _ => legacy(message, request),
    });
    let client = client(&network, &Person::consents(), Revision::V2025_11_25).answering(Arc::new(Agreeable));
    client.initialize().await.unwrap();
    let mut shown = 0;
    assert_eq!(client.call_observed("tools/call", None, &mut |_| shown += 1).await.unwrap(), "done");
    assert_eq!(shown, 3);
    let messages = network.to(RESOURCE).into_iter().map(|request| serde_json::from_slice(&request.body).unwrap());
    let answers: Vec<Value> = messages.filter(|message: &Value| message.get("method").is_none()).collect();
    assert_eq!(answers[0]["result"], json!({ "action": "accept" }));
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(71), &json!(-32601)));
    assert_eq!(answers[2]["result"], json!({}));
}

/// A legacy stream that ends early is resumed after its last event; one that cannot be resumed has ended.
#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_resumed() {
    let network = endpoint(|message, request| match (&request.method, message["method"].as_str()) {
        (&Method::POST, Some("tools/call")) => Reply::events(&["id: e1\nretry: 2500\ndata:\n\n"]),
        (&Method::POST, Some("resources/read")) => Reply::events(&["retry: 10\ndata:\n\n"]),
        (&Method::POST, Some("prompts/get")) => Reply::events(&["id: dead\ndata:\n\n"]),
        (&Method::GET, _) => match request.headers[names::LAST_EVENT_ID].to_str().unwrap() {
            "e1" => Reply::events(&["id: e2\ndata:\n\n"]),
            "e2" => Reply::events(&["data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"late\"}\n\n"]),
            _ => Reply::events(&[]),
        },
        _ => legacy(message, request),
    });
    let client = client(&network, &Person::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(client.call("tools/call", None).await.unwrap(), "late");
    assert_eq!(begun.elapsed().as_millis(), 5_000);
    assert_eq!(client.call("resources/read", None).await.unwrap_err().code(), "mcp.ended");
    let before = network.to(RESOURCE).len();
    assert_eq!(client.call("prompts/get", None).await.unwrap_err().code(), "mcp.ended");
    assert_eq!(network.to(RESOURCE).len() - before, 1 + 8);
}

/// Headers that a server misses are sent once the tool's definition was read; a revision that it speaks after all is
/// spoken again, once.
#[tokio::test]
async fn a_modern_server_may_refuse_once() {
    let error = |message: &Value, code: i64, data: Value| {
        let error = json!({ "code": code, "message": "no", "data": data });
        Reply::json(400, json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
    };
    let network = endpoint(move |message, request| match message["method"].as_str() {
        Some("tools/list") => {
            let properties = json!({ "p": { "type": "string", "x-mcp-header": "P" } });
            let broken = json!({ "p": { "type": "string", "x-mcp-header": "" } });
            let tool =
                |name: &str, properties: &Value| json!({ "name": name, "inputSchema": { "properties": properties } });
            Reply::json(200, result(message, json!({ "tools": [tool("t", &properties), tool("broken", &broken)] })))
        }
        Some("tools/call") if !request.headers.contains_key("mcp-param-p") => error(message, -32020, Value::Null),
        Some("tools/call") => Reply::json(200, result(message, json!("called"))),
        _ => error(message, -32022, json!({ "supported": ["2026-07-28"] })),
    });
    let client = client(&network, &Person::consents(), Revision::V2026_07_28);
    let params = json!({ "name": "t", "arguments": { "p": "v" } });
    assert_eq!(client.call("tools/call", Some(params)).await.unwrap(), "called");
    let other = json!({ "name": "other", "arguments": {} });
    assert_eq!(client.call("tools/call", Some(other)).await.unwrap_err().code(), "mcp.rpc");
    let listed = client.call("tools/list", None).await.unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);

    let before = network.to(RESOURCE).len();
    assert_eq!(client.call("server/discover", None).await.unwrap_err().code(), "mcp.rpc");
    assert_eq!(network.to(RESOURCE).len() - before, 2);
}

/// A session that the server does not know any more is begun again, once; an error of the method itself is told.
#[tokio::test]
async fn a_lost_session_is_begun_again() {
    let gone = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session"},"id":null}"#;
    let no_method = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"},"id":2}"#;
    let other = r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"},"id":2}"#;
    for (status, body, refusals, outcome, sessions) in [
        (404, "", 1, Ok(()), 2),
        (400, gone, 1, Ok(()), 2),
        (404, "", 2, Err("mcp.status"), 2),
        (404, no_method, 1, Err("mcp.rpc"), 1),
        (400, other, 1, Err("mcp.rpc"), 1),
        (400, "", 1, Err("mcp.status"), 1),
    ] {
        let (refused, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counts = (Arc::clone(&refused), Arc::clone(&begun));
        let network = endpoint(move |message, request| {
            if message["method"] == "initialize" {
                counts.1.fetch_add(1, Ordering::Relaxed);
            }
            if message["method"] == "ping" && counts.0.fetch_add(1, Ordering::Relaxed) < refusals {
                return Reply::json(status, body);
            }
            legacy(message, request)
        });
        let client = client(&network, &Person::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        assert_eq!(client.call("ping", None).await.map(drop).map_err(|error| error.code()), outcome, "{status} {body}");
        assert_eq!(begun.load(Ordering::Relaxed), sessions, "{status} {body}");
    }
}
