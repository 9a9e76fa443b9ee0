//! A rejected request is authorized once more or fails, with a code for each cause.

use portcullis_testkit::protected_resource::{TOKEN_URL, prm};

use super::*;

/// I9: after a rejected token, a request causes at most one new authorization.
#[tokio::test]
async fn a_rejected_token_causes_one_new_authorization() {
    let network = FetchFn::new(|request| {
        let sent = request
            .headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        match request.url.as_str() {
            RESOURCE if sent == Some(b"Bearer old") => Some(Reply::challenge()),
            RESOURCE if sent.is_some() => {
                let message: Value = serde_json::from_slice(&request.body).unwrap();
                Some(Reply::json(200, result(&message, json!("ok"))))
            }
            _ => well_behaved(request),
        }
    });
    let user = ScriptedUser::consents();
    let client = client(&network, &user, Revision::V2026_07_28);
    client.set_token(token(RESOURCE, "old").await);
    assert_eq!(client.call("ping", None).await.unwrap(), "ok");
    assert_eq!(user.visits(), 1);
    assert_eq!(client.token().unwrap().access_token().secret(), "hush");
    assert_eq!(
        network.to(RESOURCE)[0].headers[header::AUTHORIZATION],
        "Bearer old"
    );

    let never = FetchFn::new(|request| match request.url.as_str() {
        RESOURCE => Some(Reply::challenge()),
        _ => well_behaved(request),
    });
    let user = ScriptedUser::consents();
    let client = super::tests::client(&never, &user, Revision::V2026_07_28);
    client.set_token(token(RESOURCE, "old").await);
    assert_eq!(
        client.call("ping", None).await.unwrap_err().code(),
        "mcp.unauthorized"
    );
    assert_eq!(user.visits(), 1);
    assert_eq!(never.to(TOKEN_URL).len(), 1);
    assert_eq!(never.to(RESOURCE).len(), 2);
    assert!(client.token().is_none());
}

#[tokio::test]
async fn concurrent_requests_share_one_authorization() {
    let network = endpoint(|message, _| Reply::json(200, result(message, json!("ok"))));
    let user = ScriptedUser::consents();
    let client = client(&network, &user, Revision::V2026_07_28);
    let (one, other) = tokio::join!(client.call("ping", None), client.call("ping", None));
    assert_eq!(one.unwrap(), json!("ok"));
    assert_eq!(other.unwrap(), json!("ok"));
    assert_eq!(user.visits(), 1);
}

/// I9: a redirect is not followed, with or without a token.
#[tokio::test]
async fn a_redirect_is_an_error() {
    for status in [301, 302, 303, 307, 308] {
        let network = endpoint(move |_, _| {
            Reply::status(status).header(header::LOCATION, "https://evil.example/")
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
        assert_eq!(
            client.call("ping", None).await.unwrap_err().code(),
            "mcp.redirected"
        );
        assert!(
            network
                .requests()
                .iter()
                .all(|request| request.url.host_str() != Some("evil.example"))
        );
    }
}

/// I9, H4: a token of another origin or of another path is not sent.
#[tokio::test]
async fn a_token_of_another_resource_is_not_sent() {
    let network = FetchFn::new(|_| Some(Reply::status(500)));
    let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
    for other in [
        "https://other.example/mcp",
        "https://mcp.example.com/",
        "https://mcp.example.com/mcp/below",
    ] {
        client.set_token(token(other, "foreign").await);
    }
    assert_eq!(
        client.call("ping", None).await.unwrap_err().code(),
        "mcp.status"
    );
    assert!(
        !network.requests()[0]
            .headers
            .contains_key(header::AUTHORIZATION)
    );
}

#[tokio::test]
async fn rejections_have_different_codes() {
    let network = endpoint(|message, _| match message["method"].as_str().unwrap() {
        "scope" => Reply::status(403).header(
            header::WWW_AUTHENTICATE,
            r#"Bearer error="insufficient_scope", scope="a b""#,
        ),
        "unknown" => Reply::json(
            404,
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no\u{1b}[1m" } }),
        ),
        "unnamed" => Reply::json(
            200,
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "m" } }),
        ),
        "html" => Reply::status(200).header(header::CONTENT_TYPE, "text/html"),
        "other" => Reply::json(200, json!({ "jsonrpc": "2.0", "id": 999, "result": 1 })),
        "ended" => Reply::events(&["data: {\"method\":\"a\"}\n\n"]),
        "broken" => Reply::events(&["data: {\n\n"]),
        "large" => Reply::json(200, "x".repeat(5 * 1024 * 1024)),
        "large event" => Reply::events(&[&format!("data: {}", "x".repeat(5 * 1024 * 1024))]),
        _ => Reply::status(503),
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
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
    let message = client.call("unknown", None).await.unwrap_err().to_string();
    assert!(
        message.ends_with("the server reports error -32601: no\\u{1b}[1m"),
        "{message}"
    );
}

/// The error of a server that is busy, or cannot validate the token now, says when to try again. No
/// new token is requested.
#[tokio::test]
async fn the_error_says_when_to_try_again() {
    let network = endpoint(|message, _| {
        let reply = match message["method"].as_str().unwrap() {
            "unvalidated" => Reply::challenge(),
            "limited" => Reply::json(
                429,
                json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32603, "message": "Too many requests" } }),
            ),
            _ => Reply::status(503),
        };
        reply.header(header::RETRY_AFTER, "7")
    });
    let user = ScriptedUser::consents();
    let client = client(&network, &user, Revision::V2026_07_28);
    client.set_token(token(RESOURCE, "hush").await);
    for (method, code) in [
        ("unvalidated", "mcp.unauthorized"),
        ("limited", "mcp.rpc"),
        ("down", "mcp.status"),
    ] {
        let error = client.call(method, None).await.unwrap_err();
        assert_eq!(error.code(), code, "{method}");
        assert!(
            error
                .to_string()
                .ends_with("; the server asks to try again in 7 s"),
            "{error}"
        );
    }
    assert_eq!((user.visits(), network.to(RESOURCE).len()), (0, 3));
}

#[tokio::test]
async fn without_an_authorizer_a_challenge_is_an_error() {
    let network = FetchFn::new(well_behaved);
    let start = StartUrl::parse(RESOURCE).unwrap();
    let client = McpClient::new(start, network.clone(), None, McpSettings::default());
    assert_eq!(
        client.initialize().await.unwrap_err().code(),
        "mcp.unauthorized"
    );
    assert_eq!(network.requests().len(), 1);
}

#[tokio::test]
async fn a_server_of_an_unknown_revision_is_rejected() {
    for version in ["2024-11-05", "2026-07-28", ""] {
        let network = endpoint(move |message, _| {
            Reply::json(200, result(message, json!({ "protocolVersion": version })))
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        assert_eq!(
            client.initialize().await.unwrap_err().code(),
            "mcp.revision"
        );
    }
}

/// E11: every revision with sessions and Streamable HTTP is supported. Later requests have the
/// negotiated one as their header.
#[tokio::test]
async fn every_revision_with_sessions_is_supported() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let network = endpoint(
            move |message, request| match message["method"].as_str().unwrap() {
                "initialize" => {
                    Reply::json(200, result(message, json!({ "protocolVersion": version })))
                }
                _ if request.headers[names::PROTOCOL_VERSION] != version => Reply::status(400),
                "notifications/initialized" => Reply::status(202),
                _ => Reply::json(200, result(message, json!("ok"))),
            },
        );
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        assert_eq!(client.call("ping", None).await.unwrap(), "ok", "{version}");
    }
}

/// E11: a batch of a server of 2025-03-26 is split into messages, in a body and in an event.
#[tokio::test]
async fn a_batch_of_the_server_is_read() {
    for as_event in [false, true] {
        let network = endpoint(move |message, _| {
            if message["method"] == "initialize" {
                return Reply::json(
                    200,
                    result(message, json!({ "protocolVersion": "2025-03-26" })),
                );
            }
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
            let batch = json!([progress, result(message, json!("ok"))]);
            if as_event {
                Reply::events(&[&format!("data: {batch}\n\n")])
            } else {
                Reply::json(200, batch)
            }
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        let mut observed = 0;
        let response = client
            .call_with_observer("ping", None, &mut |_| observed += 1)
            .await;
        assert_eq!(response.unwrap(), json!("ok"), "{as_event}");
        assert_eq!(observed, 1, "{as_event}");
    }
}

/// Obtains a token with this text for this resource.
async fn token(resource: &'static str, text: &'static str) -> Arc<ResourceToken> {
    let network = FetchFn::new(move |request| match request.url.as_str() {
        TOKEN_URL => Some(Reply::json(
            200,
            json!({ "access_token": text, "token_type": "Bearer" }),
        )),
        url if url == resource => {
            Some(Reply::status(401).header(header::WWW_AUTHENTICATE, "Bearer"))
        }
        url if url.contains("/.well-known/oauth-protected-resource") => {
            Some(Reply::json(200, prm(resource)))
        }
        _ => well_behaved(request),
    });
    let settings = AuthorizerSettings::default();
    let authorizer = Authorizer::builder(ScriptedUser::consents())
        .fetch(network)
        .clock(Arc::new(ManualClock::new()))
        .settings(settings)
        .build()
        .unwrap();
    Arc::new(
        authorizer
            .authorize(&StartUrl::parse(resource).unwrap())
            .await
            .unwrap(),
    )
}

/// After an error for missing headers, the tool's definition is read and the request repeated.
/// After an error for the revision, the request is repeated once if the server lists the revision.
#[tokio::test]
async fn a_rejected_modern_request_is_repeated_once() {
    let error = |message: &Value, code: i64, data: Value| {
        let error = json!({ "code": code, "message": "no", "data": data });
        Reply::json(
            400,
            json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
        )
    };
    let network = endpoint(move |message, request| match message["method"].as_str() {
        Some("tools/list") => {
            let properties = json!({ "p": { "type": "string", "x-mcp-header": "P" } });
            let broken = json!({ "p": { "type": "string", "x-mcp-header": "" } });
            let tool = |name: &str, properties: &Value| json!({ "name": name, "inputSchema": { "properties": properties } });
            Reply::json(
                200,
                result(
                    message,
                    json!({ "tools": [tool("t", &properties), tool("broken", &broken)] }),
                ),
            )
        }
        Some("tools/call") if !request.headers.contains_key("mcp-param-p") => {
            error(message, -32020, Value::Null)
        }
        Some("tools/call") => Reply::json(200, result(message, json!("called"))),
        _ => error(message, -32022, json!({ "supported": ["2026-07-28"] })),
    });
    let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
    let params = json!({ "name": "t", "arguments": { "p": "v" } });
    assert_eq!(
        client.call("tools/call", Some(params)).await.unwrap(),
        "called"
    );

    let other = json!({ "name": "other", "arguments": {} });
    assert_eq!(
        client
            .call("tools/call", Some(other))
            .await
            .unwrap_err()
            .code(),
        "mcp.rpc"
    );
    let listed = client.call("tools/list", None).await.unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);

    let before = network.to(RESOURCE).len();
    assert_eq!(
        client
            .call("server/discover", None)
            .await
            .unwrap_err()
            .code(),
        "mcp.rpc"
    );
    assert_eq!(network.to(RESOURCE).len() - before, 2);
}

/// The list of tools is read by pages, up to the called tool.
#[tokio::test]
async fn tools_are_read_up_to_the_one_that_is_called() {
    for (called, expected, pages) in [
        ("first", Ok(json!("called")), 1),
        ("second", Ok(json!("called")), 2),
        ("none", Err("mcp.rpc"), 2),
    ] {
        let network = endpoint(move |message, request| match message["method"].as_str() {
            Some("tools/list") => {
                let properties = json!({ "p": { "type": "string", "x-mcp-header": "P" } });
                let page = |name: &str| json!({ "tools": [{ "name": name, "inputSchema": { "properties": properties } }] });
                let mut list = page(if message["params"]["cursor"] == "2" {
                    "second"
                } else {
                    "first"
                });
                if list["tools"][0]["name"] == "first" {
                    list["nextCursor"] = "2".into();
                }
                Reply::json(200, result(message, list))
            }
            _ if request.headers.contains_key("mcp-param-p") => {
                Reply::json(200, result(message, json!("called")))
            }
            _ => {
                let error = json!({ "code": -32020, "message": "no" });
                Reply::json(
                    400,
                    json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
                )
            }
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
        let params = json!({ "name": called, "arguments": { "p": "v" } });
        let result = client.call("tools/call", Some(params)).await;
        assert_eq!(result.map_err(|error| error.code()), expected, "{called}");
        assert_eq!(
            super::server_requests::sent(&network, "tools/list").len(),
            pages,
            "{called}"
        );
    }
}

/// A request with a rejected revision is repeated only if the error lists that revision as
/// supported.
#[tokio::test]
async fn a_revision_is_tried_again_only_if_it_is_listed() {
    for (code, supported, times) in [
        (-32022, "2026-07-28", 2),
        (-32022, "2027-01-01", 1),
        (-32603, "2026-07-28", 1),
    ] {
        let network = endpoint(move |message, _| {
            let error =
                json!({ "code": code, "message": "no", "data": { "supported": [supported] } });
            Reply::json(
                400,
                json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
            )
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2026_07_28);
        assert_eq!(
            client.call("ping", None).await.unwrap_err().code(),
            "mcp.rpc"
        );
        // The first request has no token.
        assert_eq!(network.to(RESOURCE).len(), 1 + times, "{code} {supported}");
    }
}

/// A lost session is opened again once. Other errors are returned.
#[tokio::test]
async fn a_lost_session_is_opened_again() {
    let no_session =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session"},"id":null}"#;
    let no_method = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"},"id":2}"#;
    let other = r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"},"id":2}"#;
    struct Case {
        status: u16,
        body: &'static str,
        rejections: u64,
        expected: Result<(), &'static str>,
        sessions: u64,
    }
    let lost = Case {
        status: 404,
        body: "",
        rejections: 1,
        expected: Ok(()),
        sessions: 2,
    };
    let other_error = Case {
        expected: Err("mcp.rpc"),
        sessions: 1,
        ..lost
    };
    for Case {
        status,
        body,
        rejections,
        expected,
        sessions,
    } in [
        Case {
            status: 400,
            body: no_session,
            ..lost
        },
        Case {
            rejections: 2,
            expected: Err("mcp.status"),
            ..lost
        },
        Case {
            status: 404,
            body: no_method,
            ..other_error
        },
        Case {
            status: 400,
            body: other,
            ..other_error
        },
        Case {
            status: 400,
            expected: Err("mcp.status"),
            ..other_error
        },
        lost,
    ] {
        let rejected = Arc::new(AtomicU64::new(0));
        let begun = Arc::new(AtomicU64::new(0));
        let counts = (Arc::clone(&rejected), Arc::clone(&begun));
        let network = endpoint(move |message, request| {
            if message["method"] == "initialize" {
                counts.1.fetch_add(1, Ordering::Relaxed);
            }
            if message["method"] == "ping" && counts.0.fetch_add(1, Ordering::Relaxed) < rejections
            {
                return Reply::json(status, body);
            }
            legacy(message, request)
        });
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        assert_eq!(
            client
                .call("ping", None)
                .await
                .map(drop)
                .map_err(|error| error.code()),
            expected,
            "{status} {body}"
        );
        assert_eq!(begun.load(Ordering::Relaxed), sessions, "{status} {body}");
    }
}
