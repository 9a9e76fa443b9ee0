//! The log lines of requests, sessions and failures.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, ReservedPort, call_message};
use serde_json::{Value, json};

/// J1, J2: every request has one access line with the status and the caller, without the query.
#[tokio::test]
async fn access_lines() {
    let deployment = Deployment::start().await;
    let token = deployment
        .token()
        .subject("alice")
        .client_id("editor")
        .sign();
    for (request, status, subject) in [
        (
            Request::post("/mcp?a=b", INITIALIZE).bearer(&token),
            200,
            Some("alice"),
        ),
        (
            Request::post("/mcp", "{").bearer(&token),
            400,
            Some("alice"),
        ),
        (Request::post("/mcp", INITIALIZE), 401, None),
        (
            Request::post("/mcp", INITIALIZE).bearer(&deployment.test_issuer.token().sign()),
            403,
            Some("alice"),
        ),
        (Request::new("GET", "/nowhere?a=b"), 404, None),
        (Request::new("GET", "/healthz"), 200, None),
        (Request::new("GET", "/readyz"), 200, None),
        (Request::new("GET", Deployment::METADATA_PATH), 200, None),
        (
            Request::new("GET", "/mcp").header("Origin", "http://attacker.example"),
            403,
            None,
        ),
    ] {
        let head = String::from_utf8(request.to_bytes()).unwrap();
        let [method, target] = [0, 1].map(|word| head.split(' ').nth(word).unwrap());
        let path = target.split('?').next().unwrap();
        let response = deployment.send(request).await;
        assert_eq!(response.status, status, "{response:?}");
        let line = deployment.portcullis.access_line(&response).await;
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(line["http.method"], method, "{line}");
        assert_eq!(line["http.path"], path, "{line}");
        assert_eq!(line["http.status"], status, "{line}");
        assert_eq!(line["principal.subject"].as_str(), subject, "{line}");
        assert_eq!(line["deny.code"].is_string(), status >= 400, "{line}");
        assert!(line["latency.us"].is_u64(), "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
        let id = response.header("x-request-id").unwrap();
        let log = deployment.portcullis.log();
        let lines = log
            .lines()
            .filter(|line| line.contains(id) && line.contains("\"message\":\"request\""))
            .count();
        assert_eq!(lines, 1, "one access line a request");
    }
}

/// J1: log lines about sessions have the id of their request.
#[tokio::test]
async fn session_lines_have_the_request_id() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let opened = deployment.try_token(&token).await;
    let session = opened.header("mcp-session-id").unwrap();
    let deleted = deployment.delete_session(&token, session).await;
    for (message, response) in [("session opened", &opened), ("session ended", &deleted)] {
        let line = deployment
            .portcullis
            .logged(message, |line| line["message"] == message)
            .await;
        assert_eq!(
            line["span"]["request.id"].as_str(),
            response.header("x-request-id"),
            "{line}"
        );
    }
}

/// J1: access lines have the resource, the MCP method and tool, the client address, and the times
/// of the upstream and in total.
#[tokio::test]
async fn access_lines_have_details() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let tool = call_message(2, "tools/call", &json!({ "name": "add", "arguments": {} }));
    let called = deployment
        .send(
            Request::post(Deployment::ENDPOINT, tool)
                .bearer(&token)
                .session(&session),
        )
        .await;
    let line = deployment.portcullis.access_line(&called).await;
    assert_eq!(line["resource"], Deployment::RESOURCE);
    assert_eq!(line["client.address"], "127.0.0.1");
    assert_eq!(line["mcp.method"], "tools/call");
    assert_eq!(line["mcp.tool"], "add");

    let [upstream, total] =
        ["upstream.us", "latency.us"].map(|name| line[name].as_u64().expect(name));
    assert!(0 < upstream, "{line}");
    assert!(upstream <= total, "{line}");
    let denied = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await;
    let line = deployment.portcullis.access_line(&denied).await;
    assert_eq!(line["resource"], Deployment::RESOURCE, "{line}");
    assert_eq!(line.get("upstream.us"), None, "{line}");
}

/// J1, J2, J8: at level debug, a rejected token is logged beside what was expected: escaped, and
/// never the token.
#[tokio::test]
async fn rejections_are_explained() {
    /// A token, and the members of the log line about its rejection.
    struct Case {
        token: String,
        code: &'static str,
        actual: (&'static str, &'static str),
        expected: (&'static str, &'static str),
    }

    let deployment = Deployment::start().await;
    let cases = [
        Case {
            token: deployment
                .token()
                .audience("https://other.example/mcp\u{202e}")
                .sign(),
            code: "token.audience_mismatch",
            actual: ("token.audience", "https://other.example/mcp\\u{202e}"),
            expected: ("audience.expected", Deployment::RESOURCE),
        },
        Case {
            token: deployment.token().issuer("https://issuer.example/").sign(),
            code: "token.issuer_unknown",
            actual: ("token.issuer", "https://issuer.example/"),
            expected: ("issuer.expected", "https://issuer.example"),
        },
        Case {
            token: deployment.test_issuer.token().scope("mcp:other").sign(),
            code: "scope.insufficient",
            actual: ("scope.granted", "mcp:other"),
            expected: ("scope.required", "mcp:tools"),
        },
    ];
    for Case {
        token,
        code,
        actual,
        expected,
    } in cases
    {
        let response = deployment.try_token(&token).await;
        let id = response.header("x-request-id").unwrap();
        let is_explanation = |line: &Value| {
            let has_id = line["request.id"] == id || line["span"]["request.id"] == id;
            has_id && line["deny.code"] == code && line["level"] == "DEBUG"
        };
        let line = deployment.portcullis.logged(code, is_explanation).await;
        for (member, value) in [actual, expected] {
            assert_eq!(line[member].as_str(), Some(value), "{line}");
        }
        assert!(
            !deployment.portcullis.log().contains(&token),
            "the token is in the log"
        );
    }
}

/// F3, J1: at level debug, a host that is not allowed is logged.
#[tokio::test]
async fn a_rejected_host_is_explained() {
    let deployment = Deployment::start().await;
    for path in [Deployment::ENDPOINT, "/nowhere"] {
        let host = format!("backend{}:8080", path.replace('/', "."));
        let request = Request::without_host("POST", path).header("Host", &host);
        let response = deployment.send(request).await;
        assert_eq!(response.status, 403, "{response:?}");
        let is_explanation =
            |line: &Value| line["level"] == "DEBUG" && line["deny.code"] == "host.not_allowed";
        deployment.portcullis.logged(&host, is_explanation).await;
    }
}

/// J1, L1: the failure of an upstream is logged with the resource and the address.
#[tokio::test]
async fn failures_name_the_upstream() {
    let closed = ReservedPort::new();
    let address = closed.address();
    let deployment = Deployment::builder()
        .upstream_setting(format!("{{ http = \"http://{address}/mcp?key=canary\" }}"))
        .start()
        .await;
    let failed = deployment.try_token(&deployment.good_token()).await;
    assert_eq!(failed.status, 502, "{failed:?}");
    let is_warning = |line: &Value| {
        line["level"] == "WARN" && line["request.id"].as_str() == failed.header("x-request-id")
    };
    let line = deployment
        .portcullis
        .logged("upstream.unreachable", is_warning)
        .await;
    assert_eq!(line["resource"], Deployment::RESOURCE);
    assert_eq!(line["upstream.address"], address.to_string());
    assert!(
        !deployment.portcullis.log().contains("canary"),
        "the query is in the log"
    );
}

/// J5: the first forwarding header of a peer that is no trusted proxy causes one warning, which
/// names the peer and the setting. With the proxy in `trusted_proxies`, there is none.
#[tokio::test]
async fn a_proxy_that_is_not_named() {
    const WARNING: &str = "forwarded headers from 127.0.0.1 are ignored";
    let deployment = Deployment::start().await;
    let forwarded = || Request::post("/mcp", INITIALIZE).header("X-Forwarded-For", "198.51.100.7");
    deployment.send(Request::post("/mcp", INITIALIZE)).await;
    for _ in 0..3 {
        deployment.send(forwarded()).await;
    }
    let line = deployment.portcullis.logged(WARNING, |_| true).await;
    assert_eq!(
        (&line["level"], &line["header"]),
        (&json!("WARN"), &json!("x-forwarded-for")),
        "{line}"
    );
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("add it to trusted_proxies"),
        "{line}"
    );
    let last = deployment.send(Request::new("GET", "/nowhere")).await;
    deployment.portcullis.access_line(&last).await;
    assert_eq!(deployment.portcullis.log().matches(WARNING).count(), 1);

    let deployment = Deployment::builder()
        .top("trusted_proxies = [\"127.0.0.1\"]")
        .start()
        .await;
    let last = deployment.send(forwarded()).await;
    deployment.portcullis.access_line(&last).await;
    let log = deployment.portcullis.log();
    assert!(
        !log.contains("forwarded headers") && !log.contains(WITHOUT_HEADER),
        "{log}"
    );
}

const WITHOUT_HEADER: &str = "which is in trusted_proxies, has no x-forwarded-for";

/// J5: a trusted proxy that does not report its client causes one warning. Health checks and
/// requests for documents cause none.
#[tokio::test]
async fn a_proxy_that_does_not_report_its_client() {
    let deployment = Deployment::builder()
        .top("trusted_proxies = [\"127.0.0.1\"]")
        .start()
        .await;
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    for path in ["/healthz", "/readyz", metadata, "/nowhere"] {
        let last = deployment.send(Request::new("GET", path)).await;
        deployment.portcullis.access_line(&last).await;
    }
    assert!(!deployment.portcullis.log().contains(WITHOUT_HEADER));
    for _ in 0..3 {
        deployment.send(Request::post("/mcp", INITIALIZE)).await;
    }
    let is_warning = |line: &Value| line["level"] == "WARN" && line["peer.address"] == "127.0.0.1";
    let line = deployment
        .portcullis
        .logged(WITHOUT_HEADER, is_warning)
        .await;
    let text = line["message"].as_str().unwrap();
    assert!(text.contains("let the proxy set x-forwarded-for"), "{line}");
    let last = deployment.send(Request::new("GET", "/nowhere")).await;
    deployment.portcullis.access_line(&last).await;
    let count = deployment.portcullis.log().matches(WITHOUT_HEADER).count();
    assert_eq!(count, 1);
}
