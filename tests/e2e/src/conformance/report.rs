//! The result of one scenario.

use std::{fs, path::Path};

use serde::Deserialize;

use super::suite;

/// The result of a scenario.
pub(crate) struct Verdict {
    pub(crate) scenario: String,
    /// The reasons of a failure; empty if the scenario passed.
    pub(crate) faults: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
    description: Option<String>,
}

/// The beginning of the last line that the driver writes.
pub(crate) const OUTCOME: &str = "outcome: ";

/// Reads a scenario's results strictly: a failed check, a warning, a missing check, another outcome
/// of the client than the expected one, or a failure of the suite is a fault.
pub(crate) fn verdict(
    scenario: &str,
    results: &Path,
    suite_succeeded: bool,
    expected: &str,
) -> Verdict {
    let mut faults = Vec::new();
    let read = |name| {
        suite::find(results, name)
            .and_then(|path| fs::read_to_string(path).ok())
            .unwrap_or_default()
    };
    let checks: Vec<Check> = serde_json::from_str(&read("checks.json")).unwrap_or_else(|error| {
        faults.push(format!("checks.json cannot be read: {error}"));
        Vec::new()
    });
    if !checks.iter().any(|check| check.status == "SUCCESS") {
        faults.push("nothing was checked".to_owned());
    }
    for check in checks
        .iter()
        .filter(|check| matches!(check.status.as_str(), "FAILURE" | "WARNING"))
    {
        let text = check
            .error_message
            .as_deref()
            .or(check.description.as_deref())
            .unwrap_or_default();
        faults.push(format!("{}: {}: {text}", check.status, check.id));
    }
    let stderr = read("stderr.txt");
    let outcome = stderr
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(OUTCOME))
        .unwrap_or("none")
        .to_owned();
    if outcome != expected {
        let detail = stderr
            .lines()
            .filter(|line| !line.starts_with(OUTCOME))
            .collect::<Vec<_>>()
            .join(" / ");
        faults.push(format!(
            "the client ended with {outcome}, not with {expected}: {detail}"
        ));
    }
    if !suite_succeeded && faults.is_empty() {
        faults.push("the suite reports a failure".to_owned());
    }
    Verdict {
        scenario: scenario.to_owned(),
        faults,
    }
}
