//! `doctor`: what is in front of a server, and its fix.

use http::{Response, header};
use portcullis_scenarios::{Peer, PeerRequest, PeerResponse, Portcullis, Request};
use serde_json::{Value, json};

fn response(status: u16, content_type: &str, body: &str) -> PeerResponse {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(body.to_owned())
        .unwrap()
}

fn challenge(metadata: &str) -> PeerResponse {
    let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
    Response::builder()
        .status(401)
        .header(header::WWW_AUTHENTICATE, challenge)
        .body(String::new())
        .unwrap()
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
    let report: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
    let cause = &report["first_cause"];
    assert_eq!(finished.code, Some(1), "{case}: {cause:#}");
    assert_eq!(cause["rule"]["id"], json!(rule), "{case}: {cause:#}");
    let text = format!(
        "{} {}",
        cause["text"].as_str().unwrap(),
        cause["fix"].as_str().unwrap()
    );
    assert!(
        words.iter().all(|word| text.contains(word)),
        "{case}: {words:?}: {text}"
    );
}

/// J9: statuses of proxies and wrong paths have their own fixes, instead of the advice to send a
/// challenge.
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

/// J9: a server that is asked with another host than it serves, as behind a proxy that does not
/// pass `Host`, names that as the cause. No access of web pages is checked there.
#[tokio::test]
async fn a_changed_host_is_the_cause() {
    let configuration = "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:9\"\n[[issuer]]\nissuer = \
                         \"https://auth.example.com\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = { http = \
                         \"http://127.0.0.1:9/mcp\" }\n";
    let server = Portcullis::serve(configuration).await;
    let rejection = Request::without_host("POST", "/mcp")
        .header("Host", "backend")
        .send(server.address())
        .await;
    let (status, body) = (rejection.status, rejection.text());
    let proxy = Peer::start(move |request| {
        request
            .path
            .starts_with("/mcp")
            .then(|| response(status, "application/json", &body))
    })
    .await;
    let url = proxy.url("/mcp");
    let finished = Portcullis::run(&["doctor", &url]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let fix = "let the proxy pass Host (nginx: proxy_set_header Host $http_host)";
    for words in [
        "403 Forbidden (The host or origin is not allowed)",
        "    fix:  use the URL that the server publishes",
        fix,
    ] {
        assert!(finished.stdout.contains(words), "{words}: {finished:?}");
    }
    assert!(
        !finished.stdout.contains("web page may send"),
        "{finished:?}"
    );
    assert_eq!(finished.stdout.matches(fix).count(), 2, "{finished:?}");
}

/// J9: a challenge with the internal address of a server behind a proxy is the cause, and not the
/// unreachable address.
#[tokio::test]
async fn an_internal_address_in_the_challenge_is_named() {
    let script = |_: &PeerRequest| {
        Some(challenge(
            "http://127.0.0.1:9/.well-known/oauth-protected-resource/mcp",
        ))
    };
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
    assert_cause(
        "a firewall",
        blocked,
        "resource.found",
        &["Cloudflare", "let the firewall pass"],
    )
    .await;

    let blocked_issuer = |request: &PeerRequest| {
        resource(request, "").or_else(|| Some(response(403, "text/html", CHALLENGE)))
    };
    assert_cause(
        "at the issuer",
        blocked_issuer,
        "issuer.found",
        &["Cloudflare", "let the firewall pass"],
    )
    .await;
    let page = |request: &PeerRequest| {
        resource(request, "").or_else(|| {
            Some(response(
                200,
                "text/html",
                "<!doctype html><title>App</title>",
            ))
        })
    };
    assert_cause(
        "a web site",
        page,
        "issuer.found",
        &["oauth-authorization-server instead of a web page"],
    )
    .await;

    let metadata_url =
        |request: &PeerRequest| resource(request, "/.well-known/oauth-authorization-server");
    assert_cause(
        "not an issuer",
        metadata_url,
        "issuer.found",
        &["write the issuer into authorization_servers"],
    )
    .await;
}

/// Runs `doctor` on a resource whose authorization server registers clients with this response, and
/// returns the findings of the rules with this prefix as `id verdict text fix`.
async fn findings(
    peer: &Peer,
    path: &str,
    options: &[&str],
    prefix: &str,
) -> (Option<i32>, Vec<String>) {
    let url = peer.url(path);
    let finished = Portcullis::run(&[&["doctor", "--json", &url][..], options].concat()).await;
    let report: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
    let steps = report["steps"].as_array().unwrap().iter();
    let all = steps.flat_map(|step| step["findings"].as_array().unwrap());
    let shown = all
        .filter(|finding| finding["rule"]["id"].as_str().unwrap().starts_with(prefix))
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            format!(
                "{} {} {} {}",
                finding["rule"]["id"].as_str().unwrap(),
                text("verdict"),
                text("text"),
                text("fix")
            )
        });
    (finished.code, shown.collect())
}

/// J9: a resource in the metadata that differs from the URL only by a final slash is a warning.
#[tokio::test]
async fn a_final_slash_is_reported() {
    for (resource, requested, is_warned) in [
        ("/mcp/", "/mcp", true),
        ("/mcp", "/mcp/", true),
        ("/mcp", "/mcp", false),
        ("", "/", false),
    ] {
        let peer = Peer::start(move |request| {
            let is_document = request
                .path
                .starts_with("/.well-known/oauth-protected-resource");
            is_document.then(|| {
                request.json(request.resource_metadata(&format!("{}{resource}", request.base)))
            })
        })
        .await;
        let (_, found) = findings(&peer, requested, &[], "resource.match").await;
        let warned = found
            .iter()
            .filter(|finding| finding.contains("warning") && finding.contains("by a final slash"));
        assert_eq!(
            warned.count() > 0,
            is_warned,
            "{resource} {requested}: {found:?}"
        );
    }
}

/// J9: a registration endpoint that requires a token, or registers other redirect URIs, is reported
/// with a fix.
#[tokio::test]
async fn registrations_that_do_not_work_are_reported() {
    type Respond = fn(&PeerRequest) -> PeerResponse;
    let cases: [(&str, Respond, i32, &str); 6] = [
        (
            "401",
            |_| response(401, "text/plain", ""),
            0,
            "registration.response warning clients cannot register",
        ),
        (
            "403",
            |_| response(403, "application/json", r#"{"error":"access_denied"}"#),
            0,
            "requires an initial access token use a client that is registered beforehand",
        ),
        (
            "dropped",
            |request| request.json(json!({ "client_id": "c", "redirect_uris": [] })),
            1,
            "registration.redirect_uris problem it drops",
        ),
        (
            "replaced",
            |request| {
                request.json(json!({ "client_id": "c", "redirect_uris": ["https://evil.example/\u{1b}[2J"] }))
            },
            1,
            "registration.redirect_uris problem it replaces",
        ),
        (
            "absent",
            |request| request.json(json!({ "client_id": "c" })),
            0,
            "registration.redirect_uris warning",
        ),
        (
            "404",
            |_| response(404, "text/html", "<html>"),
            1,
            "registration.response problem",
        ),
    ];
    for (name, respond, code, expected) in cases {
        let peer =
            Peer::start(move |request| (request.path == "/register").then(|| respond(request)))
                .await;
        let (exit, found) = findings(&peer, "/mcp", &[], "registration.").await;
        assert!(
            found.iter().any(|finding| finding.contains(expected)),
            "{name}: {found:?}"
        );
        assert_eq!(exit, Some(code), "{name}: {found:?}");
        assert!(!found.concat().contains('\u{1b}'), "{name}: {found:?}");
    }
}

/// J9: the client that `doctor` registers is deleted where that is possible, and named where it is
/// not. None is registered with `--no-registration` or `--client-id`.
#[tokio::test]
async fn the_registered_client_is_deleted() {
    let script = |request: &PeerRequest| {
        let uris = request.message()["redirect_uris"].clone();
        match request.path.as_str() {
            "/register" => Some(request.json(json!({
                "client_id": "c", "redirect_uris": uris, "registration_access_token": "hush-hush",
                "registration_client_uri": format!("{}/register/c", request.base),
            }))),
            "/register/c" => Some(Response::builder().status(204).body(String::new()).unwrap()),
            _ => None,
        }
    };
    let peer = Peer::start(script).await;
    let (code, found) = findings(&peer, "/mcp", &[], "registration.").await;
    assert_eq!(code, Some(0), "{found:?}");
    assert!(
        found
            .iter()
            .any(|finding| finding.starts_with("registration.deleted met")),
        "{found:?}"
    );
    let deletions = peer.requests("/register/c");
    let authorizations: Vec<_> = deletions
        .iter()
        .map(|request| (request.method.as_str(), request.authorization.as_deref()))
        .collect();
    assert_eq!(authorizations, [("DELETE", Some("Bearer hush-hush"))]);

    for options in [&["--no-registration"][..], &["--client-id", "me"]] {
        findings(&peer, "/mcp", options, "registration.").await;
    }
    assert_eq!(peer.requests("/register").len(), 1);

    let permanent = Peer::start(|_| None).await;
    let (code, found) = findings(&permanent, "/mcp", &[], "registration.deleted").await;
    assert_eq!(code, Some(0), "{found:?}");
    assert!(
        found[0].contains("`portcullis doctor (test)` (me) remains"),
        "{found:?}"
    );
}
