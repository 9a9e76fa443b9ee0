//! `examine` finds what prevents `open`, and nothing else.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use portcullis_config::{from_text, plan::Plan};
use portcullis_state_store::StateDirectory;
use tokio::sync::watch;

use crate::{Persistence, Product};

const SESSION_KEYS: &str = "session-keys";
const ENDS: &str = "session-ends";
const KEPT_IN_MEMORY: &str = "[session]\nwithout_state = \"reject_ends\"\n";
const OWN_KEYS: &str = "[session]\nkeys = [{ file = \"STATE/own-keys\" }]\n";
const AUDIT: &str = "[audit]\ntarget = { file = \"/dev/null\" }\n";
const BROKER: &str = "[broker]\n[[broker.provider]]\nkind = \"keycloak\"\nissuer = \"https://auth.example.com/realms/prod\"\n\
                      client_id = \"portcullis\"\nclient_secret = { env = \"PATH\" }\n";

fn plan(state_dir: &Path, tables: &[&str]) -> Plan {
    let text = format!(
        "base_url = \"http://127.0.0.1:3000\"\nstate_dir = {state_dir:?}\n{}[[resource]]\nendpoint = \"/mcp\"\n\
         upstream = {{ http = \"http://127.0.0.1:1/\" }}\n[[issuer]]\nissuer = \"https://as.example.com\"\n",
        tables
            .concat()
            .replace("STATE", &state_dir.display().to_string())
    );
    Plan::new(&from_text(&text).unwrap()).unwrap()
}

/// Returns what `examine` finds. Asserts that `open` fails with it, or succeeds if there is
/// nothing.
async fn found(state_dir: &Path, tables: &[&str]) -> Option<String> {
    let plan = plan(state_dir, tables);
    let found = Persistence::examine(&plan).await;
    let (_running, shutdown) = watch::channel(false);
    let error = Persistence::open(&plan, Product::default(), None, shutdown)
        .await
        .err()
        .map(|error| error.to_string());
    assert!(found.len() <= 1, "{found:?}");
    let found = found.first().map(|found| found.text.clone());
    assert_eq!(found, error);
    found
}

/// N4: `check` rejects a file in the state directory if and only if the start does.
#[tokio::test]
async fn files_are_examined_as_the_start_reads_them() {
    for (file, text, mode, tables, key) in [
        (SESSION_KEYS, "short", 0o600, &[][..], Some("state_dir")),
        (SESSION_KEYS, "short", 0o600, &[OWN_KEYS], None),
        (SESSION_KEYS, "short", 0o600, &[KEPT_IN_MEMORY], None),
        (ENDS, "another format", 0o600, &[], Some("state_dir")),
        (
            ENDS,
            "another format",
            0o600,
            &[OWN_KEYS],
            Some("state_dir"),
        ),
        (
            ENDS,
            "another format",
            0o600,
            &[KEPT_IN_MEMORY, BROKER],
            None,
        ),
        (StateDirectory::AUDIT_KEY, "short", 0o600, &[], None),
        (
            StateDirectory::AUDIT_KEY,
            "short",
            0o600,
            &[AUDIT],
            Some("audit.key"),
        ),
        (
            StateDirectory::AUDIT_KEY,
            "k",
            0o644,
            &[AUDIT],
            Some("audit.key"),
        ),
        (
            StateDirectory::BROKER_KEYS,
            "short",
            0o600,
            &[BROKER],
            Some("broker.keys"),
        ),
        (
            StateDirectory::BROKER_KEYS,
            "k",
            0o640,
            &[BROKER],
            Some("broker.keys"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(folder.path().join("own-keys"), "k".repeat(44)).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let found = found(folder.path(), tables).await;
        let named = found.as_deref().and_then(|found| found.split(':').next());
        assert_eq!(named, key, "{file} {mode:o} {tables:?}: {found:?}");
    }
}

/// N4: a state directory that cannot be used is an error if sessions, the broker or the audit trail
/// need it.
#[tokio::test]
async fn an_unusable_directory_is_found_where_it_is_needed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (tables, key) in [
        (&[][..], Some("state_dir")),
        (&[KEPT_IN_MEMORY], None),
        (&[KEPT_IN_MEMORY, BROKER], Some("state_dir")),
        (&[KEPT_IN_MEMORY, AUDIT], Some("audit.key")),
    ] {
        let found = found(file.path(), tables).await;
        let named = found.as_deref().and_then(|found| found.split(':').next());
        assert_eq!(named, key, "{tables:?}: {found:?}");
    }
}
