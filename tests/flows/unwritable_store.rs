//! Signing in and refreshing with a credential store that cannot be written.

use portcullis_scenarios::{Finished, Peer, Portcullis, Scratch};
use serde_json::json;

use crate::connect::Bridge;

/// Starts a server whose tokens expire after these seconds and whose refresh tokens can be used
/// once.
async fn server(expires_in: u32) -> Peer {
    let issued = std::sync::atomic::AtomicU32::new(0);
    Peer::start(move |request| {
        (request.path == "/token").then(|| {
            let number = issued.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            request.json(json!({
                "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": expires_in,
                "refresh_token": format!("refresh-{number}"),
            }))
        })
    })
    .await
}

/// A file size limit of zero, which has the same effect as a full disk.
const FULL_DISK: &str = "-f 0";

/// Runs the program with [`FULL_DISK`].
async fn run_on_full_disk(arguments: &[&str]) -> Finished {
    Portcullis::run_limited(arguments, FULL_DISK, "").await
}

/// I5: on a full disk, the refresh token is not used. It works when there is space again.
#[tokio::test]
async fn a_full_disk_does_not_use_the_refresh_token() {
    let server = server(1).await;
    let store = Scratch::path_for("store");
    let url = server.url("/mcp");
    let login =
        Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");

    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;

    let full = run_on_full_disk(&["token", &url, "--store", store.as_str()]).await;
    assert_eq!(full.code, Some(1), "{full:?}");
    assert_eq!(full.stdout, "", "{full:?}");
    assert!(
        full.stderr.contains("cannot write the credential file"),
        "{full:?}"
    );
    assert!(full.stderr.contains("--store"), "{full:?}");
    assert_eq!(server.requests("/token").len(), 1);
    assert_eq!(server.requests("/authorize").len(), 1);

    let token = Portcullis::run(&["token", &url, "--store", store.as_str()]).await;
    assert_eq!(token.code, Some(0), "{token:?}");
    assert_eq!(token.stdout.trim(), "token-2", "{token:?}");
    assert_eq!(server.requests("/authorize").len(), 1);
}

/// I5: a login that cannot be stored fails before the sign-in, and the error names the fix. The
/// bridge signs in and keeps the tokens in memory, with one warning.
#[tokio::test]
async fn a_sign_in_without_a_writable_store() {
    let server = server(300).await;
    let store = Scratch::path_for("store");
    let url = server.url("/mcp");

    // Even root cannot create a directory there.
    for (is_full, directory) in [(true, store.as_str()), (false, "/proc/portcullis/store")] {
        let arguments = ["login", &url, "--auto-consent", "--store", directory];
        let login = if is_full {
            run_on_full_disk(&arguments).await
        } else {
            Portcullis::run(&arguments).await
        };
        assert_eq!(login.code, Some(1), "{login:?}");
        assert_eq!(server.requests("/authorize").len(), 0, "{login:?}");
        assert!(login.stderr.contains("--store"), "{login:?}");
    }
    let in_store = ["--auto-consent", "--store", store.as_str()];
    let mut bridge = Bridge::start_limited(&url, &in_store, FULL_DISK);
    let response = bridge.initialize().await;
    assert_eq!(server.requests("/authorize").len(), 1, "{response}");
    assert!(response["result"].is_object(), "{response}");

    let bridged = bridge.close().await;
    let warnings = bridged.stderr.matches("kept in memory").count();
    assert_eq!(warnings, 1, "{bridged:?}");
}
