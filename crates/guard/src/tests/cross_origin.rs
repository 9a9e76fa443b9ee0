//! CORS, `Host` and `Origin`.

use http::{HeaderValue, Method, Request, StatusCode, header::VARY};

use super::support::{METADATA_PATH, Setup, With, request};

fn preflight(path: &str) -> Request<()> {
    request(Method::OPTIONS, path)
        .with("origin", "https://app.example")
        .with("access-control-request-method", "POST")
}

/// F1, F2: a preflight is answered before the bearer check, with the requested headers.
#[tokio::test]
async fn preflights_need_no_token() {
    let mut setup = Setup::new();
    setup.settings.cors.methods = vec![Method::GET, Method::POST, Method::DELETE];
    let asked = "authorization, content-type, mcp-session-id,X-Custom";
    let answer = setup
        .send(preflight("/mcp").with("access-control-request-headers", asked))
        .await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.body.as_str(), "");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(answer.header("access-control-allow-headers"), Some(asked));
    assert_eq!(answer.header("access-control-max-age"), Some("7200"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(setup.inner.count(), 0);
    assert_eq!(setup.sink.only().status, 204);
    assert_eq!(setup.sink.only().code, None);
}

/// F2: requested headers are reflected only if they are a list of names of bounded length.
#[tokio::test]
async fn malformed_requested_headers_are_not_reflected() {
    let setup = Setup::new();
    for asked in [
        "a: b",
        "a\"b",
        "<script>",
        "x\u{e9}",
        "a;b",
        "(x)",
        &"a,".repeat(3000),
    ] {
        let answer = setup
            .send(preflight("/mcp").with("access-control-request-headers", asked))
            .await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(
            answer.header("access-control-allow-headers"),
            None,
            "{asked}"
        );
    }
    let twice = preflight("/mcp")
        .with("access-control-request-headers", "a")
        .with("access-control-request-headers", "b");
    assert_eq!(
        setup
            .send(twice)
            .await
            .header("access-control-allow-headers"),
        None
    );
}

/// F1: an OPTIONS request that is not a preflight needs a token.
#[tokio::test]
async fn other_options_need_a_token() {
    let setup = Setup::new();
    for plain in [
        request(Method::OPTIONS, "/mcp"),
        request(Method::OPTIONS, "/mcp").with("origin", "https://app.example"),
        request(Method::OPTIONS, "/mcp").with("access-control-request-method", "POST"),
    ] {
        assert_eq!(setup.send(plain).await.status, StatusCode::UNAUTHORIZED);
    }
    let answer = setup
        .send(request(Method::OPTIONS, "/mcp").bearer(&setup.token("")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body.as_str(), "inner");
}

/// B6, F2: every response, including a 401, exposes headers to web pages.
#[tokio::test]
async fn headers_are_exposed_on_every_response() {
    let mut setup = Setup::new();
    setup.settings.cors.exposed_headers = vec![
        "mcp-session-id".parse().unwrap(),
        "mcp-protocol-version".parse().unwrap(),
    ];
    let token = setup.token("");
    for (request, status) in [
        (request(Method::POST, "/mcp"), 401),
        (request(Method::POST, "/mcp").bearer("x"), 401),
        (request(Method::POST, "/mcp").bearer(&token), 200),
        (
            request(Method::POST, "/mcp?access_token=x").bearer(&token),
            400,
        ),
        (request(Method::GET, METADATA_PATH), 200),
        (request(Method::POST, METADATA_PATH), 405),
        (
            request(Method::POST, "/mcp")
                .with("origin", "https://b.example")
                .with("origin", "https://b.example"),
            403,
        ),
        (preflight("/mcp"), 204),
    ] {
        let answer = setup.send(request).await;
        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("access-control-expose-headers"),
            Some("www-authenticate, x-request-id, mcp-session-id, mcp-protocol-version")
        );
    }
}

/// F2, F3: a list of origins restricts which pages can send requests and read responses.
#[tokio::test]
async fn a_list_restricts_origins() {
    let mut setup = Setup::new();
    setup.settings.origins = setup
        .settings
        .origins
        .clone()
        .allow_origin("https://app.example")
        .unwrap();
    let answer = setup
        .send(request(Method::POST, "/mcp").with("origin", "https://app.example"))
        .await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(answer.header("vary"), Some("Origin"));
    let answer = setup.send(request(Method::POST, "/mcp")).await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("vary"), Some("Origin"));
    let answer = setup.send(preflight("/mcp")).await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert!(
        answer
            .headers
            .get_all(VARY)
            .iter()
            .any(|value| value == "Origin")
    );
}

/// F3: a rejected host or origin gets 403 before any other step, even for metadata, preflights and
/// valid tokens.
#[tokio::test]
async fn origins_are_checked_first() {
    let setup = Setup::at("http://127.0.0.1:3000/mcp");
    let token = setup.token("");
    for (method, path) in [
        (Method::GET, METADATA_PATH),
        (Method::OPTIONS, "/mcp"),
        (Method::POST, "/mcp"),
    ] {
        let base = || {
            request(method.clone(), path)
                .with("access-control-request-method", "POST")
                .bearer(&token)
        };
        let rebound = base();
        let mut foreign = base().with("origin", "https://evil.example");
        foreign
            .headers_mut()
            .insert("host", HeaderValue::from_static("127.0.0.1:3000"));
        for (request, code) in [
            (rebound, "host.not_allowed"),
            (foreign, "origin.not_allowed"),
        ] {
            let answer = setup.send(request).await;
            assert_eq!(
                answer.status,
                StatusCode::FORBIDDEN,
                "{method} {path} {code}"
            );
            assert_eq!(answer.header("access-control-allow-origin"), None);
            assert_eq!(answer.header("www-authenticate"), None);
            assert_eq!(setup.sink.all().last().unwrap().code, Some(code));
        }
    }
    assert_eq!(setup.inner.count(), 0);
}

/// F3: on loopback, pages of loopback origins with any port are accepted.
#[tokio::test]
async fn loopback_origins_are_accepted() {
    let setup = Setup::at("http://127.0.0.1:3000/mcp");
    let mut local = request(Method::POST, "/mcp")
        .bearer(&setup.token(""))
        .with("origin", "http://localhost:5173");
    local
        .headers_mut()
        .insert("host", HeaderValue::from_static("localhost:3000"));
    let answer = setup.send(local).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://localhost:5173")
    );
}

/// F3: a missing or repeated host gets 400.
#[tokio::test]
async fn exactly_one_host() {
    let setup = Setup::new();
    let mut none = request(Method::GET, METADATA_PATH);
    none.headers_mut().remove("host");
    let several = request(Method::GET, METADATA_PATH).with("host", "api.example.com");
    for request in [none, several] {
        assert_eq!(setup.send(request).await.status, StatusCode::BAD_REQUEST);
    }
}

/// F2: the CORS headers of the inner service are replaced.
#[tokio::test]
async fn inner_cors_headers_are_replaced() {
    let mut setup = Setup::new();
    for (name, value) in [
        ("access-control-allow-origin", "https://evil.example"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "*"),
        ("access-control-allow-headers", "*"),
        ("access-control-max-age", "1"),
        ("access-control-allow-private-network", "true"),
        ("access-control-expose-headers", "*"),
        ("vary", "Accept"),
        ("x-custom", "kept"),
    ] {
        setup
            .inner
            .headers
            .append(name, HeaderValue::from_static(value));
    }
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    let mut cors: Vec<_> = answer
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control"))
        .collect();
    cors.sort_by_key(|name| name.as_str());
    assert_eq!(
        cors,
        [
            "access-control-allow-origin",
            "access-control-expose-headers"
        ]
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("www-authenticate, x-request-id")
    );
    assert_eq!(answer.header("vary"), Some("Accept"));
    assert_eq!(answer.header("x-custom"), Some("kept"));
}

/// F2: they are removed even if the request has no origin.
#[tokio::test]
async fn inner_cors_headers_are_removed_without_origin() {
    let mut setup = Setup::new();
    setup.settings.origins = setup.settings.origins.clone().only_listed_origins();
    setup.inner.headers.append(
        "access-control-allow-origin",
        HeaderValue::from_static("https://evil.example"),
    );
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
