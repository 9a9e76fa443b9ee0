//! [`toml`]: a value of the schema, as a configuration file has it.

use serde_json::Value;

/// Returns a value in TOML, on one line.
pub(crate) fn toml(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(toml).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_in_toml() {
        let value = json!({ "a": [1, "x"], "b": { "c": true } });
        assert_eq!(toml(&value), "{ a = [1, \"x\"], b = { c = true } }");
    }
}
