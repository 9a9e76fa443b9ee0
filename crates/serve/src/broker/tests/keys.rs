//! The records and the keys of the broker in the state directory.

use std::{fs, sync::Arc};

use portcullis_broker::BrokerKeys;
use portcullis_config::plan::Plan;
use portcullis_metadata::SystemClock;
use portcullis_state_store::StateDirectory;

use crate::Persistence;

use super::{super::persistence::BrokerPersistence, TestServer, plan};

fn open(directory: &tempfile::TempDir) -> anyhow::Result<BrokerPersistence> {
    let directory = StateDirectory::open(directory.path()).unwrap();
    BrokerPersistence::open_directory(&plan(&[]), &directory, Arc::new(SystemClock::new()))
}

/// Returns the plan with this state directory.
fn stored(directory: &tempfile::TempDir) -> Plan {
    let path = format!("{:?}", directory.path());
    plan(&[("\"off\"", &path)])
}

async fn key_id(server: &TestServer) -> String {
    let keys = server.get("/oauth/jwks").await.json();
    keys["keys"][0]["kid"].as_str().unwrap().to_owned()
}

/// The keys are generated once. A file with other keys takes effect at a reload, and the issuer of
/// the tokens has them then.
#[tokio::test]
async fn keys_are_kept_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(StateDirectory::BROKER_KEYS);
    let server = TestServer::with(&plan(&[]), open(&directory).unwrap());
    let first = key_id(&server).await;
    drop(server);
    let server = TestServer::with(&plan(&[]), open(&directory).unwrap());
    assert_eq!(key_id(&server).await, first);
    let issuer = Arc::clone(server.state.load().issuers().last().unwrap());
    server.reload(&plan(&[]));
    assert!(Arc::ptr_eq(
        &issuer,
        server.state.load().issuers().last().unwrap()
    ));
    assert!(!server.state.load().has_other_broker_keys());
    fs::write(&file, &*BrokerKeys::generate().unwrap()).unwrap();
    assert!(server.state.load().has_other_broker_keys());
    server.reload(&plan(&[]));
    assert!(!server.state.load().has_other_broker_keys());
    assert_ne!(key_id(&server).await, first);
    assert!(!Arc::ptr_eq(
        &issuer,
        server.state.load().issuers().last().unwrap()
    ));
}

/// Nothing is issued without the records: a server with a broker does not start if its state
/// directory cannot be used, although the configuration permits that for sessions.
#[tokio::test]
async fn an_unusable_directory_refuses_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let path = format!("{:?}", file);
    let without = "[session]\nwithout_state = \"reject_ends\"\n[broker]";
    let plan = plan(&[("\"off\"", &path), ("[broker]", without)]);
    let (_running, shutdown) = tokio::sync::watch::channel(false);
    let opened = Persistence::open(&plan, crate::Product::default(), None, shutdown).await;
    let error = opened.err().unwrap().to_string();
    assert!(error.starts_with("state_dir: "), "{error}");
    assert!(error.contains(&file.display().to_string()), "{error}");
    assert_eq!(Persistence::examine(&plan).await.len(), 1);
}

/// N4: records that were written with other keys are found before the start, and nothing changes.
/// So are keys that are missing: the start would generate others.
#[tokio::test]
async fn records_of_other_keys_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join(StateDirectory::BROKER_KEYS);
    let server = TestServer::with(&plan(&[]), open(&directory).unwrap());
    let client = r#"{"redirect_uris":["http://127.0.0.1/"],"token_endpoint_auth_method":"none"}"#;
    let registration = format!(
        "POST /oauth/register HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{client}",
        client.len()
    );
    assert_eq!(server.send(&registration).await.status(), 201);
    drop(server);
    let stored = stored(&directory);
    assert_eq!(Persistence::examine(&stored).await, []);

    let backup = directory.path().join("backup");
    fs::copy(&keys, &backup).unwrap();
    fs::write(&keys, &*BrokerKeys::generate().unwrap()).unwrap();
    for is_missing in [false, true] {
        if is_missing {
            fs::remove_file(&keys).unwrap();
        }
        let found = Persistence::examine(&stored).await;
        assert_eq!(found.len(), 1);
        let words = format!("other keys than those in {}; restore", keys.display());
        assert!(found[0].text.starts_with("broker.keys: "), "{found:?}");
        assert!(found[0].text.contains(&words), "{found:?}");
        assert_eq!(keys.exists(), !is_missing);
    }
    fs::rename(&backup, &keys).unwrap();
    assert_eq!(Persistence::examine(&stored).await, []);
}

/// A server does not start with keys or records that it cannot use: it would forget which tokens it
/// revoked, or sign all users out. The error names the file.
#[tokio::test]
async fn unusable_files_refuse_the_start() {
    for (name, key) in [
        (StateDirectory::BROKER_KEYS, "broker.keys: "),
        ("records.redb", "state_dir: "),
    ] {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&directory).unwrap());
        let file = directory.path().join(name);
        fs::write(&file, "damaged").unwrap();
        let error = format!("{:#}", open(&directory).err().unwrap());
        assert!(error.starts_with(key), "{error}");
        assert!(error.contains(&file.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "damaged");
        let found = Persistence::examine(&stored(&directory)).await;
        let found: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(found, [&*error]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "damaged");
    }
}
