use std::{path::PathBuf, time::Duration};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::TIMEOUT;

/// The records of an audit file, as soon as a wanted one is among them. A line that is still being written is no record yet.
///
/// # Panics
/// When none comes in time, or a whole line is no JSON.
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
