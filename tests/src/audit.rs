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
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
