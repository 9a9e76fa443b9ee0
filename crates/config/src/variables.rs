//! Environment variables that set keys: their names, their values, and those that cannot.

use figment::providers::Env;
use serde_json::Value;

use crate::{KeyPath, Segment, schema, toml_text};

/// The start of the names of environment variables.
const PREFIX: &str = "PORTCULLIS_";
/// What separates the names of tables and keys.
const SEPARATOR: &str = "__";

/// Variables with the prefix that are not configuration: tokens of clients and administrators, the
/// log filter, the path of test vectors, and the sign of the container image.
const NOT_CONFIGURATION: &[&str] = &[
    "token",
    "admin_token",
    "metrics_token",
    "log",
    "vectors",
    "container",
];

/// Returns the variables that set keys of tables.
pub(super) fn provider() -> Env {
    all().filter(|key| !is_in_list(&key_of(key.as_str())))
}

/// Returns the keys of lists, such as `resource[0].endpoint`, that variables name. The lists have no
/// entries beside those of the file.
pub(super) fn of_lists() -> Vec<KeyPath> {
    let keys = all();
    let keys = keys.iter().map(|(key, _)| key_of(key.as_str()));
    keys.filter(is_in_list).collect()
}

fn key_of(name: &str) -> KeyPath {
    KeyPath::parse(&name.to_ascii_lowercase())
}

fn all() -> Env {
    Env::prefixed(PREFIX)
        .ignore(NOT_CONFIGURATION)
        .split(SEPARATOR)
}

fn is_in_list(key: &KeyPath) -> bool {
    let mut table = key.parent();
    while let Some(path) = table {
        if schema::type_name(&path) == Some("array") {
            return true;
        }
        table = path.parent();
    }
    false
}

/// Returns the name of the variable of a key.
pub(super) fn name(key: &KeyPath) -> String {
    let names = key.segments().iter().map(|segment| match segment {
        Segment::Name(name) => name.to_ascii_uppercase(),
        Segment::Index(position) => position.to_string(),
    });
    let names: Vec<String> = names.collect();
    format!("{PREFIX}{}", names.join(SEPARATOR))
}

/// Returns an assignment as in a shell, such as `PORTCULLIS_LISTEN=127.0.0.1:3000`.
pub(super) fn assignment(key: &KeyPath, value: &Value) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@".contains(c);
    let text = match value {
        Value::String(text) => text.clone(),
        other => toml_text::value(other)?,
    };
    Some(if text.chars().all(is_plain) {
        format!("{}={text}", name(key))
    } else {
        format!("{}='{text}'", name(key))
    })
}

/// Returns what to write instead of a variable whose name has one underscore between table and key.
pub(super) fn meant(table: &KeyPath, name: &str) -> Option<String> {
    let splits = name.match_indices('_').filter_map(|(at, _)| {
        let inner = table.name(&name[..at]);
        Some((schema::type_name(&inner)?, inner, &name[at + 1..]))
    });
    for (type_name, inner, rest) in splits {
        if type_name == "array" {
            return Some(format!(
                "keys of [[{}]] can only be set in the file",
                inner.header()
            ));
        }
        let key = inner.name(rest);
        if schema::has_fixed_name(&key) {
            let name = self::name(&key);
            return Some(format!("did you mean {name}, with two underscores?"));
        }
        if let Some(fix) = meant(&inner, rest) {
            return Some(fix);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_with_one_underscore_are_recognized() {
        let meant = |name| meant(&KeyPath::default(), name).unwrap_or_default();
        for (name, fix) in [
            ("session_idle_timeout", "PORTCULLIS_SESSION__IDLE_TIMEOUT,"),
            ("admin_tls_key", "PORTCULLIS_ADMIN__TLS__KEY,"),
            (
                "resource_endpoint",
                "keys of [[resource]] can only be set in the file",
            ),
        ] {
            assert!(meant(name).contains(fix), "{name}: {}", meant(name));
        }
        for name in ["listn", "base_urls", "session_x", "session_", "_"] {
            assert_eq!(meant(name), "", "{name}");
        }
    }

    #[test]
    fn values_are_written_as_in_a_shell() {
        for (value, expected) in [
            (json!("127.0.0.1:3000"), "PORTCULLIS_A__B=127.0.0.1:3000"),
            (json!("a b"), "PORTCULLIS_A__B='a b'"),
            (json!(["10.0.0.0/8"]), "PORTCULLIS_A__B='[\"10.0.0.0/8\"]'"),
            (json!(4), "PORTCULLIS_A__B=4"),
        ] {
            let key = KeyPath::parse("a.b");
            assert_eq!(assignment(&key, &value).as_deref(), Some(expected));
        }
    }
}
