//! Every documented rejection, with its exact status, headers and body.

use portcullis_scenarios::{Deployment, HttpResponse, INITIALIZE, Request, call_message};
use serde_json::json;

const CHALLENGE: &str = "Bearer realm=\"mcp\", resource_metadata=\"http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp\", scope=\"mcp:tools\"";
const INVALID_TOKEN: &str = "error=\"invalid_token\", error_description=\"The access token is expired, revoked or otherwise not accepted\"";

/// Returns the names of a response's headers, without those that HTTP adds.
fn header_names(response: &HttpResponse) -> Vec<&str> {
    let framing = ["date", "content-length", "connection"];
    let mut names: Vec<&str> = response
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !framing.contains(name))
        .collect();
    names.sort_unstable();
    names
}

/// B1, B2: a missing or rejected token of any type gets 401 with the challenge and a generic body.
#[tokio::test]
async fn unauthorized() {
    let deployment = Deployment::start().await;
    let mut responses = Vec::new();
    for method in ["POST", "GET", "DELETE"] {
        let response = deployment
            .send(Request::new(method, Deployment::ENDPOINT))
            .await;
        assert_eq!(response.assert_unauthorized(), None, "{method}");
        assert_eq!(
            response.header("www-authenticate"),
            Some(CHALLENGE),
            "{method}"
        );
        responses.push(response);
    }
    let invalid = format!("{CHALLENGE}, {INVALID_TOKEN}");
    for (case, token) in [
        ("not a JWT", "abc".to_owned()),
        ("expired", deployment.token().expires_in(-60).sign()),
        (
            "another audience",
            deployment
                .token()
                .audience("https://elsewhere.example/")
                .sign(),
        ),
        (
            "another issuer",
            deployment
                .token()
                .issuer("https://elsewhere.example")
                .sign(),
        ),
        (
            "a bad signature",
            portcullis_testkit::flip_signature(&deployment.good_token()),
        ),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let response = deployment
                .send(Request::new(method, Deployment::ENDPOINT).bearer(&token))
                .await;
            assert_eq!(
                response.assert_unauthorized(),
                Some("invalid_token"),
                "{method}, {case}"
            );
            assert_eq!(
                response.header("www-authenticate"),
                Some(invalid.as_str()),
                "{method}, {case}"
            );
            responses.push(response);
        }
    }
    for response in &responses {
        let expected = [
            "access-control-expose-headers",
            "cache-control",
            "content-type",
            "vary",
            "www-authenticate",
            "x-request-id",
        ];
        assert_eq!(header_names(response), expected, "{response:?}");
        assert_eq!(
            response.header("content-length"),
            Some("86"),
            "{response:?}"
        );
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// E5: a POST without a usable session that is not an `initialize` request gets 400 and -32000 with
/// a null id, for any body.
#[tokio::test]
async fn no_session() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let list = call_message(7, "tools/list", &json!({}));
    let post = |body: &str| Request::post(Deployment::ENDPOINT, body).bearer(&token);
    let unknown = "A".repeat(44);
    for (case, request) in [
        ("a request", post(&list)),
        ("a request, unknown session", post(&list).session(&unknown)),
        (
            "initialize, unknown session",
            post(INITIALIZE).session(&unknown),
        ),
        (
            "a notification",
            post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ),
        (
            "initialize as a notification",
            post(r#"{"jsonrpc":"2.0","method":"initialize"}"#),
        ),
        (
            "a response",
            post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        ),
        ("not JSON", post("{")),
        ("an empty body", post("")),
        ("a batch", post(&format!("[{INITIALIZE}]"))),
        (
            "text",
            Request::new("POST", Deployment::ENDPOINT)
                .bearer(&token)
                .header("Content-Type", "text/plain")
                .body("hello"),
        ),
        (
            "no type",
            Request::new("POST", Deployment::ENDPOINT)
                .bearer(&token)
                .body("hello"),
        ),
    ] {
        let response = deployment.send(request).await;
        response.assert_no_session();
        assert_eq!(
            response.text(),
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
            "{case}"
        );
        let expected = [
            "access-control-expose-headers",
            "cache-control",
            "content-type",
            "vary",
            "x-request-id",
        ];
        assert_eq!(header_names(&response), expected, "{case}: {response:?}");
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// E6: GET and DELETE with a missing or unknown identifier get 400 with a plain-text body.
#[tokio::test]
async fn no_stream() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, Deployment::ENDPOINT).bearer(&token);
        let mut denied = Vec::new();
        for (identifier, code) in [
            (None, "session.missing"),
            (Some("unknown"), "session.unknown"),
            (Some(""), "session.unknown"),
        ] {
            let request = identifier
                .iter()
                .fold(request.clone(), |request, identifier| {
                    request.session(identifier)
                });
            let response = deployment.send(request).await;
            assert_eq!(response.status, 400, "{method}: {response:?}");
            assert_eq!(
                response.header("content-type"),
                Some("text/plain; charset=utf-8"),
                "{response:?}"
            );
            assert_eq!(response.text(), "Invalid or missing session ID");
            denied.push((response, code));
        }
        deployment.portcullis.assert_all_denied(&denied).await;
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// J1: every rejection has a new request id, and the log has the reason with the same id.
#[tokio::test]
async fn correlation() {
    let deployment = Deployment::start().await;
    let inbound = "11111111-2222-3333-4444-555555555555";
    let expired = deployment.token().expires_in(-60).sign();
    let mut denied = Vec::new();
    for (request, code) in [
        (
            Request::post(Deployment::ENDPOINT, INITIALIZE),
            "bearer.missing",
        ),
        (
            Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&expired),
            "token.expired",
        ),
        (
            Request::post(Deployment::ENDPOINT, "{").bearer(&deployment.good_token()),
            "session.missing",
        ),
        (Request::new("GET", "/nowhere"), "path.unknown"),
        (
            Request::new("POST", Deployment::METADATA_PATH),
            "metadata.method",
        ),
    ] {
        let response = deployment
            .send(request.header("X-Request-Id", inbound))
            .await;
        assert_ne!(
            response.header("x-request-id"),
            Some(inbound),
            "{response:?}"
        );
        assert_eq!(response.count("x-request-id"), 1, "{response:?}");
        denied.push((response, code));
    }
    deployment.portcullis.assert_all_denied(&denied).await;

    let mut ids: Vec<_> = denied
        .iter()
        .map(|(response, _)| response.header("x-request-id").unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), denied.len());
    assert!(
        !deployment.portcullis.log().contains(inbound),
        "an inbound id is in the log"
    );
}
