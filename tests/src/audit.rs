//! [`audit_records`]: reads an audit file.

use std::{fs, io::ErrorKind, path::Path, time::Duration};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::TIMEOUT;

/// Waits for a record that satisfies a predicate and returns all records of the file. A file that
/// does not exist has no records, and an incomplete last line is skipped.
///
/// # Panics
/// Panics if there is no such record in time, the file cannot be read, or a complete line is not
/// JSON.
pub async fn audit_records(path: impl AsRef<Path>, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let path = path.as_ref();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let records = read(path);
        if records.iter().any(&wanted) {
            return records;
        }
        assert!(
            Instant::now() < deadline,
            "no such record in {}: {records:?}",
            path.display()
        );
        sleep(Duration::from_millis(10)).await;
    }
}

fn read(path: &Path) -> Vec<Value> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    // Read as text without the incomplete line, which can end within a character.
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = String::from_utf8_lossy(&bytes[..end.map_or(0, |end| end + 1)]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
