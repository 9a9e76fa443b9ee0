//! `portcullis mcp-remote`, which accepts the arguments of mcp-remote.

use portcullis_scenarios::{Portcullis, Scratch};
use serde_json::json;

use crate::connect::{Bridge, demo};

/// I10: a client's configuration for mcp-remote works unchanged. Each option without effect is
/// logged once.
#[tokio::test]
async fn a_configuration_for_mcp_remote_works() {
    let ((_demo, url), store) = (demo().await, Scratch::path_for("store"));
    let store = ["--store", store.as_str()];
    let login = Portcullis::run(&[&["login", &url, "--auto-consent"][..], &store].concat()).await;
    assert_eq!(login.code, Some(0), "{login:?}");

    let token = Portcullis::run(&[&["token", &url][..], &store].concat())
        .await
        .stdout;
    let authorization = format!("Bearer {}", token.trim());
    let arguments = [
        &[
            url.as_str(),
            "9696",
            "--header",
            "Authorization:${AUTH_HEADER}",
            "--transport",
            "http-only",
        ][..],
        &[
            "--allow-http",
            "--keep-alive",
            "--headers-timeout",
            "30",
            "--host",
            "127.0.0.1",
            "--frobnicate",
        ],
    ]
    .concat();
    let mut bridge =
        Bridge::start_command("mcp-remote", &arguments, &[("AUTH_HEADER", &authorization)]);
    assert_eq!(
        bridge.initialize().await["result"]["protocolVersion"],
        "2025-11-25"
    );

    let call = bridge
        .request(
            1,
            "tools/call",
            json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }),
        )
        .await;
    assert_eq!(call["result"]["content"][0]["text"], "3", "{call}");
    let finished = bridge.close().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    let log = finished.stderr;

    for option in [
        "--allow-http is ignored: ",
        "--keep-alive is ignored: ",
        "--frobnicate is ignored: ",
    ] {
        assert_eq!(log.matches(option).count(), 1, "{log}");
    }
    assert!(!log.contains(token.trim()), "{log}");
}

/// I9: an option that would weaken security is a usage error: one line, and the exit code 2.
#[tokio::test]
async fn weakening_options_exit_with_2() {
    for arguments in [
        &["http://192.0.2.1/mcp", "--allow-http"][..],
        &["http://192.0.2.1/mcp"],
        &["https://mcp.example.com/mcp", "--host", "evil.example"],
        &["https://mcp.example.com/mcp", "--ignore-tool", "delete*"],
        &["--debug"],
    ] {
        let ended = Portcullis::run(&[&["mcp-remote"][..], arguments].concat()).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.stdout, "", "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let help = Portcullis::run(&["mcp-remote", "https://mcp.example.com/mcp", "--help"]).await;
    assert_eq!(help.code, Some(0), "{help:?}");
    assert!(help.stdout.contains("Usage"), "{help:?}");
}
