//! Standard streams are pipes, whose mode other processes share.

use std::{fs::File, future::pending, io, io::Write as _, os::fd::OwnedFd, sync::Arc};

use portcullis_client::{StartUrl, TokenManager};
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::json;

use super::server::{Server, ServerResponse};
use crate::{Bridge, BridgeSettings, testing::RESOURCE};

/// Other processes with the same pipes get them back as they were as soon as the bridge ends, even if no process reads the
/// output.
#[tokio::test]
async fn pipes_block_again_when_the_bridge_ends() {
    // The second one is larger than a pipe.
    for size in [1, 1 << 20] {
        let server = Server::legacy(move |request| {
            ServerResponse::json(200, &request.result(json!({ "text": "x".repeat(size) })))
        });
        let (input, mut input_writer) = io::pipe().unwrap();
        let (_output_reader, output) = io::pipe().unwrap();
        let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        for message in [
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t" } }),
        ] {
            writeln!(input_writer, "{message}").unwrap();
        }
        drop(input_writer);
        let file = |pipe: OwnedFd| File::from(pipe);
        let (bridge_input, bridge_output) =
            (file(input.try_clone().unwrap().into()), file(output.try_clone().unwrap().into()));
        let token_manager = TokenManager::unauthenticated(StartUrl::parse(RESOURCE).unwrap());
        let bridge = Bridge::new(Arc::new(token_manager), server.clone(), BridgeSettings::default());
        bridge.run(bridge_input, bridge_output, pending()).await.unwrap();

        assert_eq!(server.named("tools/call").len(), 1);
        for flags in [fcntl_getfl(&input), fcntl_getfl(&output)] {
            assert!(!flags.unwrap().contains(OFlags::NONBLOCK), "{size}");
        }
    }
}
