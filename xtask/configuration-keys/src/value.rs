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
                .map(|(name, value)| format!("{} = {}", key(name), toml(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns a name as a key, which is a string unless all its characters can be in a bare key.
fn key(name: &str) -> String {
    let is_bare = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_in_toml() {
        let value = json!({ "a": [1, "x"], "b": { "c:d": true } });
        assert_eq!(toml(&value), "{ a = [1, \"x\"], b = { \"c:d\" = true } }");
    }
}
