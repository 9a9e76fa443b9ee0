//! `portcullis doctor --html`: the page, and the lines of the chain.

use std::fs;

use portcullis_scenarios::{Peer, Portcullis, Scratch};
use serde_json::json;

/// What the page has before the box of this part of the chain, from the box before it.
fn hop<'a>(page: &'a str, target: &str) -> &'a str {
    let (before, _) = page.split_once(&format!("<h2>{target}</h2>")).unwrap();
    let arrow = before.rfind("class=\"arrow\"").unwrap();
    &before[before[..arrow].rfind("<li class=").unwrap()..]
}

/// The lines of the chain in a report.
fn chain(stdout: &str) -> Vec<&str> {
    let lines = stdout.lines().skip_while(|line| *line != "the chain");
    lines.skip(1).take_while(|line| !line.is_empty()).collect()
}

/// A report as JSON without the difference of the clocks, which each run measures.
fn without_clocks(stdout: &str) -> Vec<&str> {
    let lines = stdout.lines();
    lines
        .filter(|line| !line.contains("the clocks differ by at most"))
        .collect()
}

/// J9: a chain that works up to a tool call. The page replaces the former file, and has neither the
/// query of the URL nor a token.
#[tokio::test]
async fn a_chain_that_works() {
    let demo = Portcullis::start(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ])
    .await;
    let url = format!("http://{}/mcp", demo.address());
    let page_file = Scratch::file("page.html", "the former page");
    let arguments = ["doctor", &url, "--html", page_file.as_str()];
    let finished = Portcullis::run(&arguments).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = chain(&finished.stdout);
    assert_eq!(lines.len(), 4, "{finished:?}");
    assert_eq!(lines[0], format!("  ok      resource {url}"));
    assert!(lines[1].starts_with("  ok      metadata http"), "{lines:?}");
    assert!(
        lines[2].starts_with("  ok      authorization server http"),
        "{lines:?}"
    );
    assert_eq!(
        lines[3],
        "  skipped MCP server: a sign-in is necessary (--login)"
    );
    let page = fs::read_to_string(page_file.path()).unwrap();
    assert!(
        hop(&page, "authorization server").starts_with("<li class=\"works\">"),
        "{page}"
    );
    assert!(
        hop(&page, "MCP server").starts_with("<li class=\"unknown\">"),
        "{page}"
    );
    assert!(!page.contains("<script"), "{page}");

    let store = Scratch::path_for("store");
    let signs_in = ["--login", "--auto-consent", "--store", store.as_str()];
    let finished = Portcullis::run(&[&arguments[..], &signs_in].concat()).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = chain(&finished.stdout);
    assert!(lines[3].starts_with("  ok      token"), "{lines:?}");
    assert!(lines[4].starts_with("  ok      MCP server"), "{lines:?}");
    let page = fs::read_to_string(page_file.path()).unwrap();
    for target in ["token", "MCP server"] {
        let hop = hop(&page, target);
        assert!(hop.starts_with("<li class=\"works\">"), "{hop}");
    }
}

/// J9: a chain that fails at the authorization server. The finding is at its arrow, the texts of
/// the server are escaped, and JSON goes to standard output as without a page.
#[tokio::test]
async fn a_chain_that_fails() {
    const HOSTILE: &str = "<script>alert(1)</script>";
    let peer = Peer::start(|request| {
        let base = &request.base;
        match request.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => Some(request.json(json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [format!("{base}/issuer")],
                "scopes_supported": ["mcp"],
            }))),
            "/.well-known/oauth-authorization-server/issuer" => Some(request.json(json!({
                "issuer": format!("{base}/other{HOSTILE}"),
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "response_types_supported": ["code"],
            }))),
            _ => None,
        }
    })
    .await;
    let url = peer.url("/mcp?key=canary");
    let page_file = Scratch::path_for("page.html");
    let arguments = ["doctor", &url, "--html", page_file.as_str()];
    let finished = Portcullis::run(&arguments).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let lines = chain(&finished.stdout);
    assert!(
        lines[2].starts_with("  problem authorization server http")
            && lines[2].contains("/issuer: "),
        "{finished:?}"
    );
    assert_eq!(lines[3], "  skipped MCP server: a hop before it fails");
    let page = fs::read_to_string(page_file.path()).unwrap();
    let failing = hop(&page, "authorization server");
    assert!(failing.starts_with("<li class=\"fails\">"), "{failing}");
    assert!(failing.contains("&lt;script&gt;"), "{failing}");
    assert!(page.contains("Fix first"), "{page}");
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains("canary"), "{page}");

    let as_json = Portcullis::run(&[&arguments[..], &["--json"]].concat()).await;
    let without_page = Portcullis::run(&["doctor", &url, "--json"]).await;
    assert_eq!(as_json.code, Some(1), "{as_json:?}");
    let [as_json, without_page] = [&as_json, &without_page].map(|run| without_clocks(&run.stdout));
    assert_eq!(as_json, without_page);
}

/// J9: a page that cannot be written is an error before the first request, with path and fix.
#[tokio::test]
async fn a_page_that_cannot_be_written() {
    let peer = Peer::start(|_| None).await;
    let folder = Scratch::folder("pages");
    let missing = folder.path().join("none/page.html");
    for path in [folder.path(), &missing, "/dev/null".as_ref()] {
        let path = path.to_str().unwrap();
        let finished = Portcullis::run(&["doctor", &peer.url("/mcp"), "--html", path]).await;
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert_eq!(finished.stdout, "");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(finished.stderr.contains("--html"), "{finished:?}");
    }
}
