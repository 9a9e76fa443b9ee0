//! Broken upstreams.

use portcullis_scenarios::{RawUpstream, Upstream};
use tokio::net::TcpListener;

use super::{Setup, issuer};

/// J9: the first cause of a broken upstream is named, with the fix.
#[tokio::test]
async fn broken_upstreams() {
    const JSON: (&str, &str) = ("content-type", "application/json");
    let server = issuer(|_| None).await;
    let to = |upstream: &str| Setup::new(&server.url(""), &format!("{{ http = \"{upstream}\" }}"));

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    to(&format!("http://{gone}/mcp")).assert_cause("gone", "upstream.reachable", &["cannot connect", "start"]).await;
    to("http://mcp.invalid/mcp").assert_cause("no host", "upstream.reachable", &["mcp.invalid", "resolved"]).await;
    let socket = Setup::new(&server.url(""), "{ unix = \"/nowhere/socket\" }");
    socket.assert_cause("no socket", "upstream.reachable", &["socket", "correct the path"]).await;

    let raw = RawUpstream::start("SSH-2.0-OpenSSH_9.6\r\n").await;
    to(&raw.url()).assert_cause("no HTTP", "upstream.reachable", &["no HTTP response", "https://"]).await;

    let sound = Upstream::start().await;
    let tls = sound.origin().replace("http:", "https:");
    to(&format!("{tls}/mcp")).assert_cause("no TLS", "upstream.tls", &["does not speak TLS", "http = \"http://"]).await;

    for (case, status, headers, body, rule, words) in [
        (
            "a redirect",
            307,
            &[("location", "/mcp/")][..],
            "",
            "upstream.redirect",
            &["307", "/mcp/\" } in resource[0]"][..],
        ),
        (
            "its own authorization",
            401,
            &[("www-authenticate", "Bearer")],
            "",
            "upstream.authorization",
            &["switch off"],
        ),
        ("another host", 421, &[], "Invalid Host header", "upstream.host", &["allowed hosts"]),
        ("a host that is blocked", 403, &[], "Invalid host header: 127.0.0.1", "upstream.host", &["allowed hosts"]),
        ("forbidden", 403, &[], "", "upstream.authorization", &["admit this machine"]),
        ("a failure", 500, &[], "", "upstream.mcp", &["500", "log of the MCP server"]),
        ("TLS on this port", 400, &[], "The plain HTTP request was sent to HTTPS port", "upstream.tls", &["https://"]),
        (
            "a web page",
            200,
            &[("content-type", "text/html")],
            "<html><title>Home</title>",
            "upstream.mcp",
            &["Home", "whole URL"],
        ),
        (
            "an error",
            200,
            &[JSON],
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
            "upstream.mcp",
            &["-32603: no"],
        ),
        (
            "an old revision",
            200,
            &[JSON],
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#,
            "upstream.revision",
            &["2024-11-05", "update the SDK"],
        ),
    ] {
        let upstream = Upstream::scripted(move |_| Some(Upstream::response(status, headers, body))).await;
        to(&format!("{}/mcp", upstream.origin())).assert_cause(case, rule, words).await;
    }

    let at_mcp =
        Upstream::scripted(|request| (request.target != "/mcp").then(|| Upstream::response(404, &[], "Not Found")))
            .await;
    let fix = format!("http = \"{}/mcp\"", at_mcp.origin());
    to(&at_mcp.origin()).assert_cause("no path", "upstream.mcp", &["404", &fix]).await;

    let sse = Upstream::scripted(|request| {
        Some(match request.target.as_str() {
            "/sse" => Upstream::response(
                200,
                &[("content-type", "text/event-stream")],
                "event: endpoint\ndata: /messages\n\n",
            ),
            _ => Upstream::response(405, &[], ""),
        })
    });
    to(&format!("{}/mcp", sse.await.origin()))
        .assert_cause("SSE", "upstream.mcp", &["2024-11-05", "Streamable HTTP"])
        .await;
    let strict = Upstream::scripted(|request| {
        let has_session = request.header("mcp-session-id").is_some();
        let is_first = request.message_method().as_deref() == Some("initialize");
        (!has_session && !is_first).then(|| Upstream::response(400, &[], "no session"))
    });
    let setup = Setup::new(&server.url(""), &strict.await.setting()).resource("sessions = \"off\"\n");
    setup.assert_cause("sessions that are switched off", "upstream.sessions", &["remove sessions"]).await;

    let setup = Setup::new(&server.url(""), &sound.setting()).resource("revisions = [\"2025-06-18\"]\n");
    setup
        .assert_cause("a revision that is not served", "upstream.revision", &["add \"2025-11-25\" to revisions"])
        .await;
}
