//! `portcullis doctor`: exit codes, and what it says of our own servers and of nothing.

use std::net::TcpListener;

use portcullis_scenarios::Portcullis;
use serde_json::Value;

/// A demonstration on free ports, and the address of its endpoint.
async fn demo() -> (Portcullis, String) {
    let demo = Portcullis::start(&["demo", "--listen", "127.0.0.1:0", "--idp-listen", "127.0.0.1:0"]).await;
    let url = format!("http://{}/mcp", demo.address());
    (demo, url)
}

#[tokio::test]
async fn our_own_chain_has_no_problem() {
    let (_demo, url) = demo().await;
    let finished = Portcullis::run(&["doctor", &url]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains(&format!("POST {url} -> 401")), "{finished:?}");
    assert!(finished.stdout.contains("0 warnings, 0 problems"), "{finished:?}");

    let finished = Portcullis::run(&["doctor", &url, "--json"]).await;
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &report["resource"]), (Some(0), &Value::from(url)));
    assert!(report["steps"].as_array().unwrap().len() > 6, "{report}");
}

#[tokio::test]
async fn problems_are_told_with_the_fix() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let finished = Portcullis::run(&["doctor", &format!("http://{free}/mcp")]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("problem cannot connect"), "{finished:?}");
    assert!(finished.stdout.contains("fix:  start the server"), "{finished:?}");

    let (_demo, url) = demo().await;
    let finished = Portcullis::run(&["doctor", &url.replace("/mcp", "/elsewhere")]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("not 401"), "{finished:?}");
}

#[tokio::test]
async fn what_cannot_run_is_told_apart() {
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
