//! [`Problem`]: the mistake at a key, and its fix: an unknown or missing key, or a value that is invalid.
//!
//! The texts are tested with whole configurations in `command/check/mistakes`.

use figment::{
    Error,
    error::{Actual, Kind},
    value::Value,
};

use super::{
    lookup::{get, last_name},
    unknown_key::KeyFix,
};
use crate::{
    KeyPath, Segment, Span, TomlLines,
    file::BrokerProviderKind,
    schema,
    similar::similar,
    toml_text,
    type_names::{expected_type, type_of},
};

/// The similarity from which one of a few values is suggested, from 0 to 1. Lower than for keys,
/// because there are few values to confuse: the mistakes in `command/check/mistakes` that are no
/// misspellings (`auto` for `watch`) are similar by 0.64 or less.
const SIMILAR_VALUE: f64 = 0.65;

/// The mistake at a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is unknown.
    UnknownKey(KeyFix),
    /// It is missing. With a line that adds it, if there is an example.
    Missing(Option<String>),
    /// Its value is invalid. The text has the key and the fix.
    InvalidValue(String),
}

impl Problem {
    /// Returns the problem that an error is about.
    pub(super) fn of(error: &Error, key: &KeyPath, root: &Value, lines: &TomlLines) -> Self {
        if is_table_in_array(key, lines) {
            let header = key.header();
            return Self::InvalidValue(format!(
                "{key} is a single table; write [{header}] instead of [[{header}]]"
            ));
        }
        match &error.kind {
            Kind::UnknownField(name, known) => {
                Self::UnknownKey(KeyFix::of(key, name, known, root, lines))
            }
            Kind::MissingField(_) => Self::Missing(example_for(key, root)),
            Kind::UnknownVariant(name, known) => {
                Self::InvalidValue(unknown_value(key, name, known, root))
            }
            Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
                Self::InvalidValue(wrong_type(key, found, expected, root, lines))
            }
            kind => {
                let text = kind.to_string();
                let message = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ");
                Self::InvalidValue(if key.is_root() {
                    message
                } else {
                    format!("{key}: {message}")
                })
            }
        }
    }

    /// Returns the text of the problem with `key`: the key, the problem and the fix.
    ///
    /// A value that has the wrong type, or is not one of the known ones, is not in it: it can be a
    /// misplaced secret. The error of a value that has the right type and is invalid can contain
    /// the value.
    pub(super) fn text(&self, key: &KeyPath) -> String {
        match self {
            Self::UnknownKey(fix) => fix.text(key),
            Self::Missing(example) => missing(key, example.as_deref()),
            Self::InvalidValue(text) => text.clone(),
        }
    }
}

/// Returns the text for a value, or for a member of a table, that is not one of the known ones.
fn unknown_value(key: &KeyPath, name: &str, known: &[&str], root: &Value) -> String {
    let last = last_name(key);
    let listed = known
        .iter()
        .map(|name| toml_text::string(name))
        .collect::<Vec<_>>()
        .join(", ");
    let suggestion = similar(name, known, SIMILAR_VALUE);
    if get(root, key).is_some_and(|value| value.as_dict().is_some()) {
        let member = toml_text::string(name);
        return match suggestion {
            _ if known.contains(&"unix") && matches!(name, "path" | "socket") => format!(
                "{key} has the unknown member {member}; write the socket and the path of requests together: \
                 {last} = {{ unix = \"/path/to/socket:/request/path\" }}"
            ),
            Some(suggestion) => {
                format!(
                    "{key} has the unknown member {member}; did you mean `{suggestion}`? known are {listed}"
                )
            }
            None => format!("{key} has the unknown member {member}; write one of {listed}"),
        };
    }
    // These values are written as tables.
    for (form, is_meant) in [
        ("http", name.contains("://")),
        ("unix", name.starts_with('/')),
        ("file", name.contains('/') || name.contains('.')),
    ] {
        if known.contains(&form) && is_meant {
            return format!("{key} is a string; write {last} = {{ {form} = \"…\" }}");
        }
    }
    match suggestion {
        Some(suggestion) => {
            format!("{key} has an unknown value; did you mean `{suggestion}`? known are {listed}")
        }
        None => format!("{key} has an unknown value; write one of {listed}"),
    }
}

fn missing(key: &KeyPath, example: Option<&str>) -> String {
    match key.to_string().as_str() {
        "resource" => {
            "resource is missing; add a [[resource]] with `endpoint` and `upstream`".to_owned()
        }
        name => match example {
            Some(example) => format!("{name} is missing; add {example}"),
            None => format!("{name} is missing; add it"),
        },
    }
}

fn wrong_type(
    key: &KeyPath,
    found: &Actual,
    expected: &str,
    root: &Value,
    lines: &TomlLines,
) -> String {
    if matches!(found, Actual::Map)
        && schema::type_name(key) == Some("array")
        && lines.is_table(key)
    {
        let header = key.header();
        return format!("{key} is a single table; write [[{header}]] instead of [{header}]");
    }
    if is_negative(found) && is_never_negative(expected) {
        let example = example_for(key, root).map(|example| format!(", such as {example}"));
        return format!(
            "{key} must not be negative; expected {}{}",
            expected_type(expected),
            example.unwrap_or_default()
        );
    }
    let type_of_key = schema::type_name(key);
    let is_quoted = |value: Option<&Value>| match (value.and_then(Value::as_str), type_of_key) {
        (Some(text), Some("integer")) => text.trim().parse::<i64>().is_ok(),
        (Some(text), Some("boolean")) => matches!(text, "true" | "false"),
        _ => false,
    };
    let fix = if is_quoted(get(root, key)) {
        "; write it without quotes".to_owned()
    } else if matches!(found, Actual::Map) && type_of_key == Some("array") {
        let example = example_for(key, root).map(|example| format!(": {example}"));
        format!("; put brackets around it{}", example.unwrap_or_default())
    } else {
        example_for(key, root)
            .map(|example| format!(", such as {example}"))
            .unwrap_or_default()
    };
    format!(
        "{key} is {}; expected {}{fix}",
        type_of(found),
        expected_type(expected)
    )
}

fn is_negative(found: &Actual) -> bool {
    match found {
        Actual::Signed(number) => *number < 0,
        Actual::Float(number) => *number < 0.0,
        _ => false,
    }
}

/// Whether no value of a type, as serde names it, is negative.
fn is_never_negative(expected: &str) -> bool {
    matches!(
        expected_type(expected),
        "a non-negative integer" | Span::EXPECTED
    )
}

/// Whether an array of tables is in place of a single table.
pub(super) fn is_table_in_array(key: &KeyPath, lines: &TomlLines) -> bool {
    lines.is_array_of_tables(key) && schema::type_name(key) == Some("object")
}

/// A line for the key, as in TOML. That of a provider of the broker is for the kind of provider.
fn example_for(key: &KeyPath, root: &Value) -> Option<String> {
    let names: Vec<&str> = key.names().collect();
    let kind = || {
        let kind = get(root, &key.parent()?.name("kind"))?;
        kind.deserialize::<BrokerProviderKind>().ok()
    };
    match names.as_slice() {
        ["broker", "provider", "client_id"] => {
            let example = kind().map(|kind| toml_text::string(kind.example_of_client_id()));
            example.map(|example| format!("client_id = {example}"))
        }
        ["broker", "provider", "allow"] => {
            kind().map(|kind| format!("allow = [{}]", kind.example_of_allow()))
        }
        _ => None,
    }
    .or_else(|| example(key))
}

/// A line for the key, as in TOML.
fn example(key: &KeyPath) -> Option<String> {
    let is_item = matches!(key.segments().last(), Some(Segment::Index(_)));
    let key = if is_item { &key.parent()? } else { key };
    Some(format!(
        "{} = {}",
        last_name(key),
        toml_text::value(schema::example(key)?)?
    ))
}

#[cfg(test)]
mod tests {
    use figment::value::{Dict, Tag};

    use super::*;

    /// A name of a table can be a number.
    #[test]
    fn values_of_numbered_names_are_found() {
        let numbered = Dict::from([("7".to_owned(), Value::from("x"))]);
        let root = Value::from(Dict::from([(
            "table".to_owned(),
            Value::Dict(Tag::Default, numbered),
        )]));
        assert_eq!(
            get(&root, &KeyPath::from_names(["table", "7"])).and_then(Value::as_str),
            Some("x")
        );
        assert_eq!(get(&root, &KeyPath::from_names(["table", "8"])), None);
    }
}
