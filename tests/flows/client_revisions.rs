//! The protocol revisions that the client commands support.

use portcullis_scenarios::{Peer, Portcullis, Scratch};
use serde_json::json;

use crate::connect::Bridge;

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
        let mut bridge = Bridge::start(&url, &options, &[]);
        let initialize = json!({ "protocolVersion": revision });
        bridge.request(1, "initialize", initialize).await;
        bridge
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        let answer = bridge.request(2, "ping", json!({})).await;
        assert!(answer["result"].is_object(), "{revision} {answer}");
    }
}
