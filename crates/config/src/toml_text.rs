//! The text of values in TOML.

use serde_json::Value;

/// Returns a basic string of TOML (TOML 1.0, section String). Characters that a terminal interprets
/// or does not show are escaped.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\'' => quoted.push('\''),
            // Rust escapes these in its own notation.
            _ if character.escape_debug().len() > 1 => match u32::from(character) {
                code @ 0..=0xffff => quoted.push_str(&format!("\\u{code:04X}")),
                code => quoted.push_str(&format!("\\U{code:08X}")),
            },
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a JSON value in TOML, on one line. `None` for `null`, which TOML does not have; in
/// tables and arrays it is left out.
pub(super) fn value(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::String(text) => string(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(self::value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| {
                Some(format!("{} = {}", key(name), self::value(member)?))
            };
            let members: Vec<_> = members.iter().filter_map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
    })
}

/// Returns the name of a key: bare if possible, otherwise as a string.
pub(super) fn key(name: &str) -> String {
    let is_bare = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        string(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A string is read back as it was.
    #[test]
    fn strings_are_toml() {
        for (text, expected) in [
            ("plain", r#""plain""#),
            ("it's", r#""it's""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\n\r\t", r#""a\n\r\t""#),
            ("\u{1b}[2J\u{7f}\u{0}", r#""\u001B[2J\u007F\u0000""#),
            ("\u{202e}\u{e0001}", r#""\u202E\U000E0001""#),
            ("ä", "\"ä\""),
        ] {
            assert_eq!(string(text), expected);
            let read = toml_edit::ImDocument::parse(format!("x = {expected}")).unwrap();
            assert_eq!(read["x"].as_str(), Some(text), "{expected}");
        }
    }

    #[test]
    fn values_are_toml() {
        for (json, expected) in [
            (json!(null), None),
            (json!(5), Some("5")),
            (json!(true), Some("true")),
            (json!(["a", null, 1]), Some(r#"["a", 1]"#)),
            (
                json!({ "a b": "c", "d": null, "e": [] }),
                Some(r#"{ "a b" = "c", e = [] }"#),
            ),
        ] {
            assert_eq!(value(&json).as_deref(), expected, "{json}");
        }
    }
}
