//! The protocol revisions that the client commands support.

use portcullis_scenarios::{Peer, Portcullis, Scratch};
use serde_json::json;

/// E11: `call`, `doctor` and `connect` work with a server of each revision that has sessions,
/// including 2025-03-26, which allows batches.
#[tokio::test]
async fn every_command_supports_every_revision_with_sessions() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let peer = Peer::start(move |request| {
            let message = request.message();
            request.authorization.as_ref()?;
            match message["method"].as_str()? {
                "initialize" => Some(request.result(json!({
                    "protocolVersion": revision, "capabilities": {}, "serverInfo": { "name": "p", "version": "1" },
                }))),
                "tools/list" if revision == "2025-03-26" => {
                    let result = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "tools": [] } });
                    Some(request.json(json!([{ "jsonrpc": "2.0", "method": "notifications/message" }, result])))
                }
                _ => None,
            }
        });
        let peer = peer.await;
        let store = Scratch::path_for("store");
        let url = peer.url("/mcp");
        let options = ["--auto-consent", "--store", store.as_str()];
        let called = Portcullis::run(&[&["call", &url, "tools/list"][..], &options].concat()).await;
        assert_eq!(called.code, Some(0), "{revision} {called:?}");
        let examined = Portcullis::run(&["doctor", &url]).await;
        assert_eq!(examined.code, Some(0), "{revision} {examined:?}");
        let messages = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": revision } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        ];
        let input = messages.map(|message| format!("{message}\n")).concat();
        let bridged =
            Portcullis::run_with_input(&[&["connect", &url][..], &options].concat(), &input).await;
        assert!(
            bridged.stdout.contains(r#""id":2,"result""#),
            "{revision} {bridged:?}"
        );
    }
}
