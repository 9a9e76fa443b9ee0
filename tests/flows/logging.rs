//! The log lines of requests and sessions.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// J1, J2: every request has one access line with the status and the caller, without the query.
#[tokio::test]
async fn access_lines() {
    let deployment = Deployment::start().await;
    let token = deployment.token().subject("alice").client_id("editor").sign();
    for (request, path, status, subject) in [
        (Request::post("/mcp?a=b", INITIALIZE).bearer(&token), "/mcp", 200, Some("alice")),
        (Request::post("/mcp", "{").bearer(&token), "/mcp", 400, Some("alice")),
        (Request::post("/mcp", INITIALIZE), "/mcp", 401, None),
        (Request::post("/mcp", INITIALIZE).bearer(&deployment.test_issuer.token().sign()), "/mcp", 403, Some("alice")),
        (Request::new("GET", "/nowhere?a=b"), "/nowhere", 404, None),
        (Request::new("GET", "/healthz"), "/healthz", 200, None),
        (Request::new("GET", "/readyz"), "/readyz", 200, None),
        (Request::new("GET", Deployment::METADATA_PATH), Deployment::METADATA_PATH, 200, None),
        (Request::new("GET", "/mcp").header("Origin", "http://attacker.example"), "/mcp", 403, None),
    ] {
        let method = String::from_utf8(request.to_bytes()).unwrap().split(' ').next().unwrap().to_owned();
        let response = deployment.send(request).await;
        assert_eq!(response.status, status, "{response:?}");
        let line = deployment.portcullis.access_line(&response).await;
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(line["http.method"], method.as_str(), "{line}");
        assert_eq!(line["http.path"], path, "{line}");
        assert_eq!(line["http.status"], status, "{line}");
        assert_eq!(line["principal.subject"].as_str(), subject, "{line}");
        assert_eq!(line["deny.code"].is_string(), status >= 400, "{line}");
        assert!(line["latency.us"].is_u64() && line["timestamp"].is_string(), "{line}");
        let id = response.header("x-request-id").unwrap();
        let log = deployment.portcullis.log();
        let lines = log.lines().filter(|line| line.contains(id) && line.contains("\"message\":\"request\"")).count();
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
    let deleted = deployment.send(Request::new("DELETE", Deployment::ENDPOINT).bearer(&token).session(session)).await;
    for (message, response) in [("session opened", &opened), ("session ended", &deleted)] {
        let line = deployment.portcullis.logged(message, |line| line["message"] == message).await;
        assert_eq!(line["span"]["request.id"].as_str(), response.header("x-request-id"), "{line}");
    }
}
