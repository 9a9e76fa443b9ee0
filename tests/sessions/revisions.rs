//! The revisions of sessions, and the response to `initialize` when the upstream negotiates a
//! revision that is not served.

use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, INITIALIZE, Request, Upstream, call_message,
    modern_request,
};
use serde_json::{Value, json};

/// Starts an upstream that negotiates this revision for every `initialize`.
async fn negotiating(revision: &'static str, content_type: &'static str) -> Upstream {
    Upstream::scripted(move |request| {
        (request.message_method().as_deref() == Some("initialize")).then(|| {
            let result =
                json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": revision, "capabilities": {} } });
            let body =
                if content_type == "text/event-stream" { format!("data: {result}\n\n") } else { result.to_string() };
            Upstream::response(200, &[("content-type", content_type), ("mcp-session-id", "theirs")], body)
        })
    })
    .await
}

/// E11: a session of 2025-03-26 works with and without a version header, which that revision does
/// not have. Batches are rejected.
#[tokio::test]
async fn the_first_one_with_streamable_http() {
    let deployment = Deployment::builder()
        .upstream(negotiating("2025-03-26", "application/json").await)
        .start()
        .await;
    let token = deployment.good_token();
    let response = deployment
        .send(
            Request::post(
                Deployment::ENDPOINT,
                INITIALIZE.replace("2025-11-25", "2025-03-26"),
            )
            .bearer(&token),
        )
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-03-26");

    let session = response.header("mcp-session-id").unwrap().to_owned();
    let post = |body: String| {
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&token)
            .session(&session)
    };
    let list = call_message(2, "tools/list", &json!({}));
    for request in [
        post(list.clone()),
        post(list.clone()).header("MCP-Protocol-Version", "2025-03-26"),
    ] {
        assert_eq!(deployment.send(request).await.status, 200);
        assert_eq!(
            deployment.upstream.last().header("mcp-session-id"),
            Some("theirs")
        );
    }
    let get = Request::new("GET", Deployment::ENDPOINT)
        .bearer(&token)
        .session(&session);
    assert_eq!(
        deployment
            .send(get.header("MCP-Protocol-Version", "2025-03-26"))
            .await
            .status,
        200
    );
    deployment
        .send(post(format!("[{list}]")))
        .await
        .assert_rpc_error(400, -32600);
}

/// E11: an `initialize` that negotiates a revision that is not served fails, names the served ones,
/// and leaves no session.
#[tokio::test]
async fn one_that_is_not_served() {
    for (revision, content_type, setting, served) in [
        (
            "2024-11-05",
            "application/json",
            "",
            json!(["2025-11-25", "2025-06-18", "2025-03-26"]),
        ),
        (
            "2024-11-05",
            "text/event-stream",
            "",
            json!(["2025-11-25", "2025-06-18", "2025-03-26"]),
        ),
        (
            "2025-03-26",
            "application/json",
            "revisions = [\"2025-11-25\", \"2026-07-28\"]",
            json!(["2025-11-25"]),
        ),
    ] {
        let deployment = Deployment::builder()
            .upstream(negotiating(revision, content_type).await)
            .resource(setting)
            .tables("[session]\nmax_total = 1")
            .start()
            .await;
        let token = deployment.good_token();
        for attempt in 1..=2 {
            let response = deployment.try_token(&token).await;
            response.assert_rpc_error(400, -32022);
            let body = response.json();
            assert_eq!(body["id"], 1, "{response:?}");
            assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
            assert_eq!(
                body["error"]["data"],
                json!({ "supported": served, "requested": "2025-11-25" })
            );
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains(revision), "{message}");
            assert!(message.contains("2025-11-25"), "{message}");
            deployment
                .portcullis
                .assert_denied(&response, "era.version_negotiated")
                .await;
            deployment.upstream.wait_for_requests(2 * attempt).await;
            let deleted = deployment
                .upstream
                .recorded()
                .into_iter()
                .filter(|request| request.method == "DELETE");
            assert_eq!(deleted.clone().count(), attempt);
            assert_eq!(
                deleted.last().unwrap().header("mcp-session-id"),
                Some("theirs")
            );
        }
    }
}

/// E2, E11: if the client disconnects before the negotiated revision is known, the session is ended
/// at the upstream.
#[tokio::test]
async fn before_it_is_known() {
    let upstream = Upstream::scripted(|request| {
        (request.message_method().as_deref() == Some("initialize")).then(|| {
            let (sender, body) = ChannelBody::new();
            sender.send(": wait\n\n".into()).unwrap();
            // The body never ends.
            std::mem::forget(sender);
            Upstream::streaming(
                200,
                &[
                    ("content-type", "text/event-stream"),
                    ("mcp-session-id", "theirs"),
                ],
                body,
            )
        })
    })
    .await;
    let deployment = Deployment::builder().upstream(upstream).start().await;
    let mut leaving = Connection::open(deployment.portcullis.address()).await;
    leaving
        .write(
            &Request::post(Deployment::ENDPOINT, INITIALIZE)
                .bearer(&deployment.good_token())
                .to_bytes(),
        )
        .await;
    deployment.upstream.wait_for_requests(1).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    drop(leaving);
    deployment.upstream.wait_for_requests(2).await;
    let last = deployment.upstream.last();
    assert_eq!(last.method.as_str(), "DELETE");
    assert_eq!(last.header("mcp-session-id"), Some("theirs"));
}

/// E11, L3: events after the negotiated revision are forwarded as they arrive.
#[tokio::test]
async fn with_further_events() {
    let (sender, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let upstream = Upstream::scripted(move |request| {
        let opens = request.message_method().as_deref() == Some("initialize");
        opens.then(|| {
            let body = body.lock().take().unwrap();
            Upstream::streaming(
                200,
                &[
                    ("content-type", "text/event-stream"),
                    ("mcp-session-id", "theirs"),
                ],
                body,
            )
        })
    })
    .await;
    let deployment = Deployment::builder().upstream(upstream).start().await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client
        .write(
            &Request::post(Deployment::ENDPOINT, INITIALIZE)
                .bearer(&deployment.good_token())
                .to_bytes(),
        )
        .await;
    sender.send("id: 1\ndata:\n\n".into()).unwrap();
    let response =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    sender.send(format!("data: {response}\n\n").into()).unwrap();
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(head.count("mcp-session-id"), 1, "{head:?}");
    assert_eq!(
        client.chunk().await.unwrap(),
        format!("id: 1\ndata:\n\ndata: {response}\n\n").into_bytes()
    );

    sender.send("data: later\n\n".into()).unwrap();
    assert_eq!(client.chunk().await.unwrap(), b"data: later\n\n");
}

/// E11, L6: methods that 2026-07-28 does not have get the upstream's response, and its list of
/// revisions restricts the gateway's list.
#[tokio::test]
async fn without_sessions() {
    let upstream = Upstream::scripted(|request| {
        let message: Value = serde_json::from_slice(&request.body).ok()?;
        let response = |status, result: Value| {
            let mut body = json!({ "jsonrpc": "2.0", "id": message["id"] });
            body.as_object_mut()
                .unwrap()
                .extend(result.as_object().unwrap().clone());
            Upstream::response(
                status,
                &[("content-type", "application/json")],
                body.to_string(),
            )
        };
        match message["method"].as_str()? {
            "resources/subscribe" | "resources/unsubscribe" => Some(response(
                404,
                json!({ "error": { "code": -32601, "message": "Method not found" } }),
            )),
            "server/discover" => Some(response(
                200,
                json!({ "result": { "supportedVersions": ["2026-07-28"], "capabilities": {} } }),
            )),
            _ => None,
        }
    })
    .await;
    let deployment = Deployment::builder().upstream(upstream).start().await;
    let token = deployment.good_token();
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let response = deployment
            .send(modern_request(Deployment::ENDPOINT, method, &json!({})).bearer(&token))
            .await;
        response.assert_rpc_error(404, -32601);
        assert_eq!(response.json()["id"], 1, "{response:?}");
    }
    assert_eq!(
        deployment
            .send(
                modern_request(Deployment::ENDPOINT, "server/discover", &json!({})).bearer(&token)
            )
            .await
            .status,
        200
    );

    let before = deployment.upstream.count();
    let mut message: Value =
        serde_json::from_str(&call_message(3, "server/discover", &json!({}))).unwrap();
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "v999.0.0",
        "io.modelcontextprotocol/clientCapabilities": {},
    });

    // Each time on a new connection, and so possibly on another worker.
    for _ in 0..4 {
        let request = Request::post(Deployment::ENDPOINT, message.to_string()).bearer(&token);
        let request = request
            .header("MCP-Protocol-Version", "v999.0.0")
            .header("Mcp-Method", "server/discover");
        let response = deployment.send(request).await;
        response.assert_rpc_error(400, -32022);
        assert_eq!(
            response.json()["error"]["data"],
            json!({ "supported": ["2026-07-28"], "requested": "v999.0.0" })
        );
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request of an unknown revision reached the upstream"
    );
}
