//! Standard streams are pipes, whose mode other processes share, and other files.

use std::{fs::File, future::pending, io, io::Write as _, os::fd::OwnedFd, sync::Arc};

use portcullis_client::{StartUrl, TokenManager};
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::json;

use super::server::{Server, ServerResponse};
use crate::{Bridge, BridgeSettings, testing::RESOURCE};

/// Other processes with the same pipes get them back as they were as soon as the bridge ends, even
/// if no process reads the output.
#[tokio::test]
async fn pipes_block_again_when_the_bridge_ends() {
    // The second one is larger than a pipe.
    for size in [1, 1 << 20] {
        let server = Server::legacy(move |request| {
            ServerResponse::json(200, &request.result(json!({ "text": "x".repeat(size) })))
        });
        let (input, mut input_writer) = io::pipe().unwrap();
        let (_output_reader, output) = io::pipe().unwrap();
        let initialize =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        for message in [
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t" } }),
        ] {
            writeln!(input_writer, "{message}").unwrap();
        }
        drop(input_writer);
        let file = |pipe: OwnedFd| File::from(pipe);
        let (bridge_input, bridge_output) = (
            file(input.try_clone().unwrap().into()),
            file(output.try_clone().unwrap().into()),
        );
        let token_manager = TokenManager::unauthenticated(StartUrl::parse(RESOURCE).unwrap());
        let bridge = Bridge::new(
            Arc::new(token_manager),
            server.clone(),
            BridgeSettings::default(),
        );
        bridge
            .run(bridge_input, bridge_output, pending())
            .await
            .unwrap();

        assert_eq!(server.named("tools/call").len(), 1);
        for flags in [fcntl_getfl(&input), fcntl_getfl(&output)] {
            assert!(!flags.unwrap().contains(OFlags::NONBLOCK), "{size}");
        }
    }
}

/// An output that cannot be written is an error, unlike one that the client has closed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_an_error() {
    let server = Server::new(|_| ServerResponse::status(500));
    let run = async |output: File| {
        let (input, mut input_writer) = io::pipe().unwrap();
        writeln!(input_writer, "not a message").unwrap();
        let token_manager = TokenManager::unauthenticated(StartUrl::parse(RESOURCE).unwrap());
        let bridge = Bridge::new(
            Arc::new(token_manager),
            server.clone(),
            BridgeSettings::default(),
        );
        bridge
            .run(File::from(OwnedFd::from(input)), output, pending())
            .await
    };
    let full = run(File::options().write(true).open("/dev/full").unwrap())
        .await
        .unwrap_err();
    assert!(
        full.to_string()
            .starts_with("the output cannot be written: "),
        "{full}"
    );
    let (reader, closed) = io::pipe().unwrap();
    drop(reader);
    run(File::from(OwnedFd::from(closed))).await.unwrap();
}
