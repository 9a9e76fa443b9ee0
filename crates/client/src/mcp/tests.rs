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
