//! Files of the state directory that are damaged, removed or those of another broker.

use std::fs;

use portcullis_scenarios::{BrokerClient, BrokerServer, McpSession, ProviderKind, TokenPair};

use super::assert_token_error;

const KEYS: &str = "broker-keys";
const RECORDS: &str = "records.redb";

/// A truncated file, or one with other content, keeps the server from starting. The error names the
/// file. With the original, everything works again.
#[tokio::test]
async fn a_damaged_file_is_named() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    server.stop().await;
    for name in [KEYS, RECORDS] {
        let path = server.state().join(name);
        let original = fs::read(&path).unwrap();
        let mut flipped = original.clone();
        flipped[..64].fill(b'x');
        for damaged in [&original[..original.len() / 2], &[], &flipped] {
            fs::write(&path, damaged).unwrap();
            let finished = server.run_to_its_end().await;
            assert_eq!(finished.code, Some(1), "{name}: {finished:?}");
            let error = finished.stderr.lines().last().unwrap();
            assert!(error.contains(path.to_str().unwrap()), "{finished:?}");
            assert_eq!(fs::read(&path).unwrap(), damaged, "{name} was changed");
        }
        fs::write(&path, original).unwrap();
    }
    server.start_again().await;
    McpSession::open(&server, &tokens.access).await;
    TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
}

/// The keys or the records of another broker keep the server from starting. The error names both
/// files, which belong together.
#[tokio::test]
async fn foreign_files_are_named() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    BrokerClient::register(&server).await;
    let mut other = BrokerServer::start(ProviderKind::Oidc).await;
    BrokerClient::register(&other).await;
    server.stop().await;
    other.stop().await;
    let paths = [KEYS, RECORDS].map(|name| server.state().join(name));
    for (name, path) in [KEYS, RECORDS].iter().zip(&paths) {
        let original = fs::read(path).unwrap();
        fs::copy(other.state().join(name), path).unwrap();
        let finished = server.run_to_its_end().await;
        assert_eq!(finished.code, Some(1), "{name}: {finished:?}");
        let error = finished.stderr.lines().last().unwrap();
        for path in &paths {
            assert!(error.contains(path.to_str().unwrap()), "{finished:?}");
        }
        fs::write(path, original).unwrap();
    }
    server.start_again().await;
}

/// Without both files, a broker starts with no records: it accepts no earlier token, code or
/// client, and users can sign in. Without the keys alone, it does not start.
#[tokio::test]
async fn new_keys_and_records_sign_all_users_out() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    server.stop().await;
    fs::remove_file(server.state().join(KEYS)).unwrap();
    let finished = server.run_to_its_end().await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for name in [KEYS, RECORDS] {
        fs::remove_file(server.state().join(name)).unwrap();
    }

    server.start_again().await;
    let rejected = McpSession::initialize(&server, "/mcp", &tokens.access).await;
    assert_eq!(rejected.status, 401, "{rejected:?}");
    let refused = client.refresh(&server, &tokens.refresh).await;
    assert_token_error(&refused, 401, "invalid_client");
    let client = BrokerClient::register(&server).await;
    let refused = client.refresh(&server, &tokens.refresh).await;
    assert_token_error(&refused, 400, "invalid_grant");
    let tokens = client.sign_in(&server, "alice").await;
    McpSession::open(&server, &tokens.access).await;
}
