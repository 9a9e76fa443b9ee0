//! Files with the secrets of client commands that other users can read or replace.

use std::{
    fs::{Permissions, set_permissions},
    os::unix::fs::PermissionsExt as _,
};

use portcullis_scenarios::{Administration, Peer, Portcullis, Scratch};
use serde_json::json;

const READABLE: &str = "every user of this machine can read";
const WRITABLE: &str = "other users can write";

/// I7, J6: a command warns of such a file, with the option that names it and the fix.
#[tokio::test]
async fn exposed_files_are_warned_of() {
    let peer = Peer::start(|_| None).await;
    let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
    let secret = Scratch::file("secret", "the-secret");
    let token = Scratch::file("token", Administration::TOKEN);
    let client = Scratch::file(
        "client.json",
        &json!({ "client_id": "me", "client_secret": "hush" }).to_string(),
    );
    let client_argument = format!("@{}", client.as_str());
    let login = [
        "login",
        &url,
        "--auto-consent",
        "--store",
        store.as_str(),
        "--client-id",
        "me",
    ];
    let login = [&login[..], &["--client-secret-file", secret.as_str()]].concat();
    let admin = [
        "admin",
        "sessions",
        "--socket",
        "/nowhere",
        "--token-file",
        token.as_str(),
    ];
    let mcp_remote = [
        "mcp-remote",
        &url,
        "--client-credentials",
        "--static-oauth-client-info",
        &client_argument,
    ];
    for (option, file, command) in [
        ("--client-secret-file", &secret, &login[..]),
        ("--token-file", &token, &admin),
        ("--static-oauth-client-info", &client, &mcp_remote),
    ] {
        for (mode, reason) in [
            (0o644, Some(READABLE)),
            (0o622, Some(WRITABLE)),
            (0o600, None),
        ] {
            set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            let environment = [("XDG_STATE_HOME", store.as_str())];
            let finished = Portcullis::run_with(command, &environment).await;
            let warned = finished
                .stderr
                .lines()
                .find(|line| line.contains(&format!("{option}: ")));
            assert_eq!(warned.is_some(), reason.is_some(), "{mode:o} {finished:?}");
            if let (Some(warned), Some(reason)) = (warned, reason) {
                assert!(
                    warned.contains(reason) && warned.contains("run `chmod "),
                    "{mode:o} {finished:?}"
                );
            }
            assert!(!finished.stderr.contains("hush"), "{finished:?}");
        }
    }
}
