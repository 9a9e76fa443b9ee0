//! The text of an error about a type, an unknown key or a missing key, with the fix.

use figment::{
    Error,
    error::{Actual, Kind},
    value::Value,
};

use crate::config::{
    KeyPath, Segment, TomlLines, schema,
    similar::similar,
    type_names::{expected_type, type_of},
};

/// What helps if top-level keys are in a table.
pub(super) const REMOVE_HEADER: &str = "its keys belong above all tables: remove the header";
/// The similarity from which a key is suggested in place of another one, from 0 to 1.
const SIMILAR_KEY: f64 = 0.8;
/// The similarity from which a key of the same table is suggested in place of another table.
const SAME_KEY: f64 = 0.95;
/// The similarity from which one of a few values is suggested.
const SIMILAR_VALUE: f64 = 0.65;

/// Returns the text of an error: the key, the problem and the fix. A value of a wrong type is not in it.
pub(super) fn describe(error: &Error, key: &KeyPath, root: &Value, lines: &TomlLines) -> String {
    if is_table_in_array(key, lines) {
        return format!("{key} is a single table; write [{key}] instead of [[{key}]]");
    }
    match &error.kind {
        Kind::UnknownField(name, known) => unknown_key(key, name, known, root, lines),
        Kind::UnknownVariant(name, known) => unknown_value(key, name, known),
        Kind::MissingField(_) => missing(key),
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            wrong_type(key, found, expected, root, lines)
        }
        kind => {
            let text = kind.to_string();
            let message = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
            if key.is_root() { message } else { format!("{key}: {message}") }
        }
    }
}

fn unknown_key(key: &KeyPath, name: &str, known: &[&str], root: &Value, lines: &TomlLines) -> String {
    let table = key.parent().unwrap_or_default();
    if let Some(fix) = synonym(key) {
        return format!("{key} is not a known key; {fix}");
    }
    if !table.is_root() && schema::keys_of(&KeyPath::default()).contains(&name) {
        let first = lines.first_table().map(|(line, header)| format!(", {header} in line {line}")).unwrap_or_default();
        return format!("{key} is a top-level key; move it above the first table{first}");
    }
    let mut elsewhere = schema::tables_with(name);
    let similar = similar(name, known, SIMILAR_KEY);
    let within = format!("[{table}.");
    if elsewhere.iter().any(|table| table.starts_with(&within)) {
        elsewhere.retain(|table| table.starts_with(&within));
    }
    let is_typo = self::similar(name, known, SAME_KEY).is_some();
    if !elsewhere.is_empty() && !is_typo && (similar.is_none() || !table.is_root()) {
        return format!("{key} is not a known key; move it to {}", elsewhere.join(" or "));
    }
    match similar {
        Some(similar) => format!("{key} is not a known key; did you mean `{similar}`?"),
        None if holds_top_level_keys(key, root, lines) => {
            format!("{key} is not a known table; {REMOVE_HEADER} [{key}]")
        }
        None => format!("{key} is not a known key; remove it, or use one of {}", known.join(", ")),
    }
}

/// The fix for a name that other programs use.
pub(super) fn synonym(key: &KeyPath) -> Option<&'static str> {
    let table = key.parent().unwrap_or_default();
    let is_resource = matches!(table.segments().first(), Some(Segment::Name(first)) if first == "resource");
    Some(match last_name(key) {
        "port" | "bind" | "address" if table.is_root() => "write address and port in listen = \"127.0.0.1:3000\"",
        "log" | "logging" | "log_level" if table.is_root() => {
            "remove it, and set the environment variable PORTCULLIS_LOG, such as PORTCULLIS_LOG=debug"
        }
        "metrics" | "prometheus" if table.is_root() => "write [admin], which serves /metrics",
        "cors" if table.is_root() || is_resource => "remove it; allowed_origins of [[resource]] narrows the origins",
        "enabled" | "enable" if !table.is_root() => "remove it; a table takes effect by being in the file",
        _ => return None,
    })
}

/// Whether this is a table at the top of the file that contains keys that belong above all tables.
fn holds_top_level_keys(key: &KeyPath, root: &Value, lines: &TomlLines) -> bool {
    let top_level = schema::keys_of(&KeyPath::default());
    let is_at_top = key.parent().is_some_and(|parent| parent.is_root()) && lines.is_table(key);
    let members = get(root, key).and_then(Value::as_dict);
    is_at_top && members.is_some_and(|members| members.keys().any(|name| top_level.contains(&name.as_str())))
}

fn unknown_value(key: &KeyPath, name: &str, known: &[&str]) -> String {
    let last = last_name(key);
    let listed = known.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    // These values are written as tables.
    for (form, is_meant) in [
        ("http", name.contains("://")),
        ("unix", name.starts_with('/')),
        ("file", name.contains('/') || name.contains('.')),
    ] {
        if known.contains(&form) && is_meant {
            return format!("{key} is a string; write {last} = {{ {form} = {name:?} }}");
        }
    }
    if known.contains(&"unix") && matches!(name, "path" | "socket") {
        return format!(
            "{key} has the unknown member {name:?}; write the socket and the path of requests together: \
             {last} = {{ unix = \"/path/to/socket:/request/path\" }}"
        );
    }
    match similar(name, known, SIMILAR_VALUE) {
        Some(suggestion) => {
            format!("{key} has the unknown value {name:?}; did you mean `{suggestion}`? known are {listed}")
        }
        None => format!("{key} has the unknown value {name:?}; write one of {listed}"),
    }
}

fn missing(key: &KeyPath) -> String {
    match key.to_string().as_str() {
        "resource" => "resource is missing; add a [[resource]] with `endpoint` and `upstream`".to_owned(),
        name => match example(key) {
            Some(example) => format!("{name} is missing; add {example}"),
            None => format!("{name} is missing; add it"),
        },
    }
}

fn wrong_type(key: &KeyPath, found: &Actual, expected: &str, root: &Value, lines: &TomlLines) -> String {
    let table = key.names().collect::<Vec<_>>().join(".");
    if matches!(found, Actual::Map) && schema::type_name(key) == Some("array") && lines.is_table(key) {
        return format!("{key} is a single table; write [[{table}]] instead of [{table}]");
    }
    let type_of_key = schema::type_name(key);
    let is_quoted = |value: Option<&Value>| match (value.and_then(Value::as_str), type_of_key) {
        (Some(text), Some("integer")) => text.trim().parse::<i64>().is_ok(),
        (Some(text), Some("boolean")) => matches!(text, "true" | "false"),
        _ => false,
    };
    let fix = if is_quoted(get(root, key)) {
        "; write it without quotes".to_owned()
    } else {
        example(key).map(|example| format!(", such as {example}")).unwrap_or_default()
    };
    format!("{key} is {}; expected {}{fix}", type_of(found), expected_type(expected))
}

/// Whether an array of tables is in place of a single table.
pub(super) fn is_table_in_array(key: &KeyPath, lines: &TomlLines) -> bool {
    lines.is_array_of_tables(key) && schema::type_name(key) == Some("object")
}

/// Returns the value of a key, if there is one.
fn get<'a>(root: &'a Value, key: &KeyPath) -> Option<&'a Value> {
    key.segments().iter().try_fold(root, |at, segment| match (at, segment) {
        (Value::Dict(_, dict), Segment::Name(name)) => dict.get(name),
        (Value::Dict(_, dict), Segment::Index(position)) => dict.get(&position.to_string()),
        (Value::Array(_, items), Segment::Index(position)) => items.get(*position),
        _ => None,
    })
}

/// Returns the last name of a path; an empty one for the whole configuration.
pub(super) fn last_name(key: &KeyPath) -> &str {
    key.names().next_back().unwrap_or_default()
}

/// A line for the key, as in TOML.
fn example(key: &KeyPath) -> Option<String> {
    let is_item = matches!(key.segments().last(), Some(Segment::Index(_)));
    let key = if is_item { &key.parent()? } else { key };
    Some(format!("{} = {}", last_name(key), toml(schema::example(key)?)))
}

fn toml(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(members) => {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        serde_json::Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use figment::value::{Dict, Tag};

    use super::*;

    /// A name of a table can be a number.
    #[test]
    fn values_of_numbered_names_are_found() {
        let numbered = Dict::from([("7".to_owned(), Value::from("x"))]);
        let root = Value::from(Dict::from([("table".to_owned(), Value::Dict(Tag::Default, numbered))]));
        assert_eq!(get(&root, &KeyPath::from_names(["table", "7"])).and_then(Value::as_str), Some("x"));
        assert_eq!(get(&root, &KeyPath::from_names(["table", "8"])), None);
    }
}
