//! `portcullis doctor` and `explain-token`: exit codes and reports.

use portcullis_scenarios::{Peer, Portcullis, ReservedPort, Scratch};
use portcullis_testkit::TestIssuer;
use serde_json::Value;

/// Starts the demo on free ports and returns the URL of its endpoint.
async fn demo() -> (Portcullis, String) {
    let demo = Portcullis::start(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
    ])
    .await;
    let url = format!("http://{}/mcp", demo.address());
    (demo, url)
}

/// A report without a problem, as text and as JSON.
#[tokio::test]
async fn the_demo_has_no_problem() {
    let (_demo, url) = demo().await;
    let finished = Portcullis::run(&["doctor", &url]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains(&format!("POST {url} -> 401")),
        "{finished:?}"
    );
    assert!(
        finished.stdout.contains("0 warnings, 0 problems"),
        "{finished:?}"
    );

    let finished = Portcullis::run(&["doctor", &url, "--json"]).await;
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(finished.code, Some(0));
    assert_eq!(report["resource"], Value::from(url));
    assert!(report["steps"].as_array().unwrap().len() > 6, "{report}");
    assert_eq!(report["first_cause"], Value::Null);
    assert_eq!(report["summary"]["problems"], Value::from(0));
    assert_eq!(report["requests"][0]["url"], report["resource"]);
}

/// `doctor --login` signs in and calls a tool. It revokes the token and does not store it.
#[tokio::test]
async fn from_the_sign_in_to_a_tool_call() {
    let listen = [
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&listen).await;
    let url = format!("http://{}/mcp", demo.address());
    let store = Scratch::path_for("store");
    let arguments = [
        "doctor",
        "--login",
        "--auto-consent",
        "--json",
        "--store",
        store.as_str(),
        &url,
    ];
    let finished = Portcullis::run(&[&arguments[..], &["--tool", "whoami"]].concat()).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let findings: Vec<_> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["findings"].as_array().unwrap())
        .collect();
    for rule in [
        "login.token",
        "login.initialize",
        "login.tools",
        "login.call",
        "login.stream",
        "login.revocation",
    ] {
        let found = findings
            .iter()
            .find(|finding| finding["rule"]["id"] == rule);
        assert_eq!(
            found.map(|finding| &finding["verdict"]),
            Some(&Value::from("met")),
            "{rule} {report:#}"
        );
    }
    let status = Portcullis::run(&["status", &url, "--store", store.as_str()]).await;
    assert_eq!(status.code, Some(1), "{status:?}");

    let without = Portcullis::run(&["doctor", "--tool", "whoami", &url]).await;
    assert_eq!(without.code, Some(2), "{without:?}");
}

/// `doctor --login` names the requested URL and the setting if the upstream behind the protection
/// has nothing at its path.
#[tokio::test]
async fn a_wrong_path_of_the_upstream() {
    let peer = Peer::start(|request| {
        (request.path == "/mcp" && request.authorization.is_some()).then(|| {
            let mut response = request.json("");
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            response
        })
    })
    .await;
    let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
    let arguments = [
        "doctor",
        "--login",
        "--auto-consent",
        "--store",
        store.as_str(),
        &url,
    ];
    let finished = Portcullis::run(&arguments).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let fix = finished
        .stdout
        .lines()
        .find(|line| line.contains("fix:") && line.contains("upstream"));
    assert!(
        fix.is_some_and(|fix| fix.contains(&url) && fix.contains("portcullis check --online")),
        "{finished:?}"
    );
}

/// J9: behind a gateway whose MCP server is down, the fix is to start that server.
#[tokio::test]
async fn an_upstream_that_is_down() {
    let peer = Peer::start(|request| {
        (request.path == "/mcp" && request.authorization.is_some()).then(|| {
            let mut response = request.json("");
            *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            response
        })
    })
    .await;
    let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
    let login = ["doctor", "--login", "--auto-consent", "--store"];
    let finished = Portcullis::run(&[&login[..], &[store.as_str(), &url]].concat()).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let fix = "fix: start the MCP server; `portcullis check --online`, where Portcullis runs";
    assert!(finished.stdout.contains(fix), "{finished:?}");
}

/// For an https URL with the port of an http server, the report names the cause.
#[tokio::test]
async fn tls_to_an_http_port_is_recognized() {
    let peer = Peer::start(|_| None).await;
    let finished =
        Portcullis::run(&["doctor", &peer.url("/mcp").replace("http://", "https://")]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("does not speak TLS on this port"),
        "{finished:?}"
    );
}

/// For a closed port and for a wrong path, the report names the problem, and the exit code is 1.
#[tokio::test]
async fn problems_are_reported_with_the_fix() {
    let closed = ReservedPort::new();
    let finished = Portcullis::run(&["doctor", &format!("http://{}/mcp", closed.address())]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("problem cannot connect"),
        "{finished:?}"
    );
    assert!(
        finished.stdout.contains("fix:  start the server"),
        "{finished:?}"
    );

    let (_demo, url) = demo().await;
    let finished = Portcullis::run(&["doctor", &url.replace("/mcp", "/elsewhere")]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("not with 401"), "{finished:?}");
}

/// Invalid arguments cause an error of one line, and the exit code is 2.
#[tokio::test]
async fn invalid_arguments_have_another_exit_code() {
    for arguments in [
        &["doctor", "mcp.example.com"][..],
        &["doctor", "ftp://x/"],
        &["doctor", "https://x/", "--ca-file", "/nowhere"],
    ] {
        let finished = Portcullis::run(arguments).await;
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert_eq!(finished.stdout, "");
    }
}

/// `explain-token` and `doctor --token` name the cause of a rejection. Neither the report nor the
/// server's log has the token.
#[tokio::test]
async fn a_token_is_explained() {
    let (demo, url) = demo().await;
    let opaque = Portcullis::run_with_input(&["explain-token", &url], "opaque-secret").await;
    assert_eq!(opaque.code, Some(1), "{opaque:?}");
    assert!(
        opaque
            .stdout
            .contains("401 Unauthorized, and its log has the reason code "),
        "{opaque:?}"
    );
    assert_eq!(opaque.stderr, "", "nothing is logged");
    assert!(
        opaque.stdout.contains("error=\"invalid_token\""),
        "{opaque:?}"
    );

    // Another issuer's signature, another audience, and expired.
    let test_issuer = TestIssuer::new("https://issuer.example");
    let token = test_issuer.token().sign();
    for arguments in [&["explain-token", &url][..], &["doctor", "--token", &url]] {
        let finished = Portcullis::run_with_input(arguments, &token).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished
                .stdout
                .contains("the token's issuer is not trusted for this resource"),
            "{finished:?}"
        );
        assert!(!format!("{finished:?}").contains(&token), "{finished:?}");
        assert_eq!(
            finished.stdout.contains("a request without a token"),
            arguments[0] == "doctor",
            "{finished:?}"
        );
    }
    let empty = Portcullis::run_with_input(&["explain-token", &url], " \n").await;
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert_eq!(empty.stderr.lines().count(), 1, "{empty:?}");
    assert!(
        !demo.log().contains("opaque-secret"),
        "the server logs no token"
    );
}
