//! Broken upstreams: the first cause is named, with the fix.

use portcullis_scenarios::{Peer, RawUpstream, ReservedPort, Upstream};

use super::{Setup, issuer};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Returns a set-up with this issuer, whose upstream has this URL.
fn with_upstream(issuer: &Peer, url: &str) -> Setup {
    Setup::new(&issuer.url(""), &format!("{{ http = \"{url}\" }}"))
}

/// J9: an upstream that cannot be reached.
#[tokio::test]
async fn unreachable_upstreams() {
    let issuer = issuer(|_| None).await;
    let closed = ReservedPort::new();
    let setup = with_upstream(&issuer, &format!("http://{}/mcp", closed.address()));
    setup
        .assert_cause(
            "a closed port",
            "upstream.reachable",
            &["cannot connect", "start"],
        )
        .await;
    let setup = with_upstream(&issuer, "http://mcp.invalid/mcp");
    setup
        .assert_cause(
            "an unknown host",
            "upstream.reachable",
            &["mcp.invalid", "resolved"],
        )
        .await;
    let setup = Setup::new(&issuer.url(""), "{ unix = \"/nowhere/socket\" }");
    setup
        .assert_cause(
            "a missing socket",
            "upstream.reachable",
            &["socket", "correct the path"],
        )
        .await;
}

/// J9: an upstream that speaks another protocol than the URL says.
#[tokio::test]
async fn other_protocols() {
    let issuer = issuer(|_| None).await;
    let ssh = RawUpstream::start("SSH-2.0-OpenSSH_9.6\r\n").await;
    let setup = with_upstream(&issuer, &ssh.url());
    setup
        .assert_cause(
            "SSH",
            "upstream.reachable",
            &["no HTTP response", "https://"],
        )
        .await;
    let plain = Upstream::start().await;
    let setup = with_upstream(
        &issuer,
        &format!("{}/mcp", plain.origin().replace("http:", "https:")),
    );
    setup
        .assert_cause(
            "no TLS",
            "upstream.tls",
            &["does not speak TLS", "http = \"http://"],
        )
        .await;
}

/// J9: an upstream whose response to `initialize` is unusable.
#[tokio::test]
async fn unusable_responses() {
    struct Case {
        name: &'static str,
        status: u16,
        header: Option<(&'static str, &'static str)>,
        body: &'static str,
        /// The rule of the first cause.
        rule: &'static str,
        /// Words in its text and fix.
        words: &'static [&'static str],
    }

    let cases = [
        Case {
            name: "a redirect",
            status: 307,
            header: Some(("location", "/mcp/")),
            body: "",
            rule: "upstream.redirect",
            words: &["307 Temporary Redirect", "/mcp/\" } in resource[0]"],
        },
        Case {
            name: "its own authorization",
            status: 401,
            header: Some(("www-authenticate", "Bearer")),
            body: "",
            rule: "upstream.authorization",
            words: &["switch off"],
        },
        Case {
            name: "another host",
            status: 421,
            header: None,
            body: "Invalid Host header",
            rule: "upstream.host",
            words: &["allowed hosts"],
        },
        Case {
            name: "a blocked host",
            status: 403,
            header: None,
            body: "Invalid host header: 127.0.0.1",
            rule: "upstream.host",
            words: &["allowed hosts"],
        },
        Case {
            name: "a forbidden address",
            status: 403,
            header: None,
            body: "",
            rule: "upstream.authorization",
            words: &["admit this machine"],
        },
        Case {
            name: "a failure",
            status: 500,
            header: None,
            body: "",
            rule: "upstream.mcp",
            words: &["500 Internal Server Error", "log of the MCP server"],
        },
        Case {
            name: "TLS on this port",
            status: 400,
            header: None,
            body: "The plain HTTP request was sent to HTTPS port",
            rule: "upstream.tls",
            words: &["https://"],
        },
        Case {
            name: "a web page",
            status: 200,
            header: Some(("content-type", "text/html")),
            body: "<html><title>Home</title>",
            rule: "upstream.mcp",
            words: &["Home", "whole URL"],
        },
        Case {
            name: "a JSON-RPC error",
            status: 200,
            header: Some(JSON),
            body: r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
            rule: "upstream.mcp",
            words: &["-32603: no"],
        },
        Case {
            name: "an old revision",
            status: 200,
            header: Some(JSON),
            body: r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#,
            rule: "upstream.revision",
            words: &["2024-11-05", "update the SDK"],
        },
    ];
    let issuer = issuer(|_| None).await;
    for Case {
        name,
        status,
        header,
        body,
        rule,
        words,
    } in cases
    {
        let upstream =
            Upstream::scripted(move |_| Some(Upstream::response(status, header.as_slice(), body)))
                .await;
        let setup = with_upstream(&issuer, &format!("{}/mcp", upstream.origin()));
        setup.assert_cause(name, rule, words).await;
    }
}

/// J9: an MCP server at another path, and one with the older transport.
#[tokio::test]
async fn other_paths_and_transports() {
    let issuer = issuer(|_| None).await;
    let at_mcp = Upstream::scripted(|request| {
        (request.target != "/mcp").then(|| Upstream::response(404, &[], "Not Found"))
    })
    .await;
    let fix = format!("http = \"{}/mcp\"", at_mcp.origin());
    with_upstream(&issuer, &at_mcp.origin())
        .assert_cause("no path", "upstream.mcp", &["404 Not Found", &fix])
        .await;
    let nowhere = Upstream::scripted(|_| Some(Upstream::response(404, &[], "Not Found"))).await;
    let fix = format!("http = \"{}/PATH\" }} in resource[0]", nowhere.origin());
    let setup = with_upstream(&issuer, &format!("{}/wrong", nowhere.origin()));
    setup
        .assert_cause(
            "a wrong path",
            "upstream.mcp",
            &["nothing at the path /wrong", "404 Not Found", &fix],
        )
        .await;

    const EVENT_STREAM: (&str, &str) = ("content-type", "text/event-stream");
    let with_sse = Upstream::scripted(|request| {
        Some(match request.target.as_str() {
            "/sse" => {
                Upstream::response(200, &[EVENT_STREAM], "event: endpoint\ndata: /messages\n\n")
            }
            _ => Upstream::response(405, &[], ""),
        })
    })
    .await;
    let setup = with_upstream(&issuer, &format!("{}/mcp", with_sse.origin()));
    setup
        .assert_cause(
            "HTTP with SSE",
            "upstream.mcp",
            &["2024-11-05", "Streamable HTTP"],
        )
        .await;
}

/// J9: settings of the resource that do not fit the upstream.
#[tokio::test]
async fn unsuitable_settings() {
    let issuer = issuer(|_| None).await;
    let sound = Upstream::start().await;
    let setup =
        Setup::new(&issuer.url(""), &sound.setting()).resource("revisions = [\"2025-06-18\"]\n");
    setup
        .assert_cause(
            "a revision is missing",
            "upstream.revision",
            &["add \"2025-11-25\" to revisions"],
        )
        .await;
}

/// J9: with `sessions = "off"`, the response to a request without the upstream's identifier
/// decides.
#[tokio::test]
async fn requests_without_an_identifier() {
    const NO_SESSION: &str =
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no session"}}"#;
    let issuer = issuer(|_| None).await;
    for (status, body, verdict, words) in [
        (
            200,
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
            "note",
            ["serves requests without one", ""],
        ),
        (
            400,
            "no session",
            "problem",
            ["400 Bad Request", "remove sessions"],
        ),
        (
            200,
            NO_SESSION,
            "problem",
            ["-32602: no session", "remove sessions"],
        ),
        (
            503,
            "",
            "warning",
            ["503 Service Unavailable", "log of the MCP server"],
        ),
        (
            429,
            NO_SESSION,
            "warning",
            ["429 Too Many Requests", "log of the MCP server"],
        ),
    ] {
        let upstream = Upstream::scripted(move |request| {
            let is_ping = request.message_method().as_deref() == Some("ping");
            (is_ping && request.header("mcp-session-id").is_none())
                .then(|| Upstream::response(status, &[JSON], body))
        })
        .await;
        let setup =
            Setup::new(&issuer.url(""), &upstream.setting()).resource("sessions = \"off\"\n");
        let (_, report) = setup.json().await;
        let steps = report["online"]["steps"].as_array().unwrap();
        let finding = &steps.last().unwrap()["findings"][0];
        assert_eq!(
            finding["rule"]["id"], "upstream.sessions",
            "{status} {body}: {finding}"
        );
        assert_eq!(finding["verdict"], verdict, "{status} {body}: {finding}");
        let text = format!("{} {}", finding["text"], finding["fix"]);
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{status} {body}: {finding}"
        );
    }
}

/// J9: an upstream that closes the connection says nothing about sessions.
#[tokio::test]
async fn no_response_without_an_identifier() {
    let issuer = issuer(|_| None).await;
    let upstream = RawUpstream::scripted(|request| {
        let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
        Some(if request.body.contains("\"initialize\"") {
            format!(
                "HTTP/1.1 200 OK\r\nmcp-session-id: s\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{opened}",
                opened.len()
            )
            .into()
        } else {
            b"not HTTP\r\n\r\n".to_vec()
        })
    })
    .await;
    let setup = Setup::new(&issuer.url(""), &upstream.setting()).resource("sessions = \"off\"\n");
    setup
        .assert_cause(
            "no response",
            "upstream.reachable",
            &["sends no HTTP response"],
        )
        .await;
}
