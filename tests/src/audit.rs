//! [`audit_records`]: reads an audit file.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::TIMEOUT;

/// Waits for a record that satisfies a predicate and returns all records of the file. An incomplete last line is skipped.
///
/// # Panics
/// Panics if there is no such record in time, or a complete line is not JSON.
pub async fn audit_records(path: PathBuf, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let read = async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            let records: Vec<Value> = whole
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
                .collect();
            if records.iter().any(&wanted) {
                return records;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, read).await.unwrap_or_else(|_| panic!("no such record in {}", path.display()))
}
