//! `doctor`: what is in front of a server, and its fix.

use http::{Response, header};
use portcullis_scenarios::{Peer, PeerRequest, PeerResponse, Portcullis};
use serde_json::{Value, json};

fn response(status: u16, content_type: &str, body: &str) -> PeerResponse {
    Response::builder().status(status).header(header::CONTENT_TYPE, content_type).body(body.to_owned()).unwrap()
}

fn challenge(metadata: &str) -> PeerResponse {
    let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
    Response::builder().status(401).header(header::WWW_AUTHENTICATE, challenge).body(String::new()).unwrap()
}

/// A protected resource whose authorization server is the issuer of this path at the same host.
fn resource(request: &PeerRequest, issuer: &str) -> Option<PeerResponse> {
    let base = &request.base;
    match request.path.as_str() {
        "/mcp" => Some(challenge(&format!("{base}/.well-known/oauth-protected-resource/mcp"))),
        "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-protected-resource" => {
            Some(request.json(
                json!({ "resource": format!("{base}/mcp"), "authorization_servers": [format!("{base}{issuer}")] }),
            ))
        }
        _ => None,
    }
}

/// Asserts that the first cause has this rule and these words in its text or its fix.
async fn assert_cause(
    case: &str,
    script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
    rule: &str,
    words: &[&str],
) {
    let server = Peer::start(script).await;
    let finished = Portcullis::run(&["doctor", "--json", &server.url("/mcp")]).await;
    let report: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
    let cause = &report["first_cause"];
    assert_eq!(finished.code, Some(1), "{case}: {cause:#}");
    assert_eq!(cause["rule"]["id"], json!(rule), "{case}: {cause:#}");
    let text = format!("{} {}", cause["text"].as_str().unwrap(), cause["fix"].as_str().unwrap());
    assert!(words.iter().all(|word| text.contains(word)), "{case}: {words:?}: {text}");
}

/// J9: statuses of proxies and wrong paths have their own fixes, instead of the advice to send a challenge.
#[tokio::test]
async fn statuses_have_their_own_fixes() {
    for (status, words) in [
        (404, "the whole URL of the MCP endpoint"),
        (405, "let the proxy pass POST"),
        (429, "raise the rate limit"),
        (500, "see the log of the server"),
        (502, "start the MCP server, or correct the address"),
        (503, "start the MCP server, or correct the address"),
        (403, "answer with 401 and a Bearer challenge"),
    ] {
        let answer = move |_: &PeerRequest| Some(response(status, "text/plain", "no"));
        assert_cause(&status.to_string(), answer, "challenge.status", &[words]).await;
    }
}

/// J9: a challenge with the internal address of a server behind a proxy is the cause, and not the unreachable address.
#[tokio::test]
async fn an_internal_address_in_the_challenge_is_named() {
    let script = |_: &PeerRequest| Some(challenge("http://127.0.0.1:9/.well-known/oauth-protected-resource/mcp"));
    let words = ["http://127.0.0.1:9", "configure the public base URL"];
    assert_cause("an internal port", script, "connection.reachable", &words).await;
}

/// J9: firewalls and web pages in place of metadata, and the URL of metadata in place of an issuer.
#[tokio::test]
async fn metadata_that_clients_cannot_read() {
    const CHALLENGE: &str = "<html><head><title>Just a moment...</title></head></html>";
    let blocked = |request: &PeerRequest| match request.path.as_str() {
        "/mcp" => resource(request, ""),
        _ => Some(response(403, "text/html", CHALLENGE)),
    };
    assert_cause("a firewall", blocked, "resource.found", &["Cloudflare", "let the firewall pass"]).await;

    let blocked_issuer =
        |request: &PeerRequest| resource(request, "").or_else(|| Some(response(403, "text/html", CHALLENGE)));
    assert_cause("at the issuer", blocked_issuer, "issuer.found", &["Cloudflare", "let the firewall pass"]).await;
    let page = |request: &PeerRequest| {
        resource(request, "").or_else(|| Some(response(200, "text/html", "<!doctype html><title>App</title>")))
    };
    assert_cause("a web site", page, "issuer.found", &["oauth-authorization-server instead of a web page"]).await;

    let metadata_url = |request: &PeerRequest| resource(request, "/.well-known/oauth-authorization-server");
    assert_cause("not an issuer", metadata_url, "issuer.found", &["write the issuer into authorization_servers"]).await;
}
