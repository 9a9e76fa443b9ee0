use std::{collections::HashMap, fs, path::Path};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::PRIVILEGED;

/// The gateway's decision on one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Decision {
    /// Whether the gateway admitted the request, which can have failed afterwards.
    pub(super) is_allowed: bool,
    /// Whether the token had all scopes.
    pub(super) is_privileged: bool,
    /// The reason code of a denial or failure.
    pub(super) code: String,
    pub(super) method: Option<String>,
    /// The recorded names.
    pub(super) names: Vec<String>,
    /// Whether the message has more names than a record can contain.
    pub(super) has_more_names: bool,
}

/// Returns all decisions of a complete trail, by request. Fails if a record was lost, or the trail
/// is not complete.
pub(super) fn decisions(trail: &Path) -> anyhow::Result<HashMap<String, Decision>> {
    let text =
        fs::read_to_string(trail).with_context(|| format!("{} cannot be read", trail.display()))?;
    let records: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let last = records.last().context("the audit trail is empty")?;
    ensure!(
        last["event"] == "audit.stopped" && last["audit.lost"] == 0,
        "the audit trail ends with {last}"
    );
    let decisions = records
        .iter()
        .filter(|record| record["event"] == "decision");
    Ok(decisions
        .map(|record| (text_of(&record["request.id"]), Decision::read(record)))
        .collect())
}

impl Decision {
    fn read(record: &Value) -> Self {
        let members = ["mcp.tool", "mcp.target", "mcp.further_targets"];
        let names: Vec<_> = members
            .iter()
            .flat_map(|member| texts(&record[*member]))
            .collect();
        let code = ["deny.code", "fail.code"]
            .into_iter()
            .find_map(|member| record[member].as_str());
        Self {
            is_allowed: record["decision"] == "allow" || record["decision"] == "fail",
            is_privileged: record["principal.subject"] == PRIVILEGED,
            code: code.unwrap_or_default().to_owned(),
            method: record["mcp.method"].as_str().map(str::to_owned),
            has_more_names: record["mcp.target_count"]
                .as_u64()
                .is_some_and(|count| count > names.len() as u64),
            names,
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_or_several_names_are_read() {
        let record = json!({"decision": "allow", "mcp.method": "tools/call", "mcp.tool": "echo"});
        let decision = Decision::read(&record);
        assert!(decision.is_allowed);
        assert_eq!(decision.names, vec!["echo".to_owned()]);
        let record = json!({"decision": "deny", "deny.code": "scope.insufficient", "mcp.target": "a",
            "mcp.further_targets": ["b"], "mcp.target_count": 3});
        let decision = Decision::read(&record);
        assert!(!decision.is_allowed);
        assert_eq!(decision.code.as_str(), "scope.insufficient");
        assert_eq!(decision.names.len(), 2);
        assert!(decision.has_more_names);
    }
}
