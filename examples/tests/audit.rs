//! The audit example: an intact trail, and one with a changed record.

use std::{fs, sync::Arc, time::Duration};

use portcullis_audit::{AuditSettings, AuditTarget, AuditTrail, ChainKeys};
use portcullis_metadata::SystemClock;

#[allow(dead_code, reason = "its main is not called here")]
#[path = "../audit.rs"]
mod example;

const SECRET: &str = "Zm9yIG5ldyByZWNvcmRzLCB0aGlydHktdHdvIGJ5dGVz";

/// J4: a program verifies a trail with the library, and finds a changed record.
#[tokio::test]
async fn a_changed_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let [key, file] = ["audit-key", "audit.jsonl"].map(|name| folder.path().join(name));
    fs::write(&key, SECRET).unwrap();
    let settings = AuditSettings::new(AuditTarget::File(file.clone()));
    let keys = ChainKeys::parse(SECRET).unwrap();
    let trail = AuditTrail::start(&settings, Some(&keys), 1, Arc::new(SystemClock::new())).unwrap();
    trail.audit().ends_not_recorded(7);
    trail.finish(Duration::from_secs(60)).await;

    let summary =
        || example::summary(&example::verified(&key, std::slice::from_ref(&file)).unwrap());
    assert_eq!(summary(), "the chain of 3 records is intact; 0 were lost");

    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("\"ends.unrecorded\":7", "\"ends.unrecorded\":6"),
    )
    .unwrap();
    assert_eq!(
        summary(),
        format!("broken in line 2 of {file:?}: record 2 was altered")
    );
}
