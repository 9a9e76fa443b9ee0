//! [`Problem`]: the mistake at a key, and its fix: an unknown or missing key, or a value that is
//! invalid.
//!
//! The texts are tested with whole configurations in `command/check/mistakes`.

use figment::{
    Error,
    error::{Actual, Kind},
    value::Value,
};

use super::{
    foreign_names::{Meaning, Written, meaning},
    lookup::{get, last_name},
    meant_value,
    unknown_key::KeyFix,
};
use crate::{
    KeyPath, Places, Segment, Span, TomlLines,
    file::BrokerProviderKind,
    schema, shown_url,
    similar::similar,
    toml_text,
    type_names::{expected_type, type_of},
    variables,
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
    pub(super) fn of(error: &Error, key: &KeyPath, root: &Value, places: &Places) -> Self {
        let lines = places.lines();
        if is_table_in_array(key, lines) {
            return Self::InvalidValue(single_table(key));
        }
        match &error.kind {
            Kind::UnknownField(name, known) => {
                Self::UnknownKey(KeyFix::of(key, name, known, root, places))
            }
            Kind::MissingField(_) => Self::Missing(example_for(key, root, places)),
            Kind::UnknownVariant(name, known) => {
                Self::InvalidValue(unknown_value(key, name, known, root, places))
            }
            Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
                Self::InvalidValue(wrong_type(key, found, expected, root, places))
            }
            kind => {
                let text = kind.to_string();
                let message = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ");
                let message = match (message.strip_suffix(Span::FIX), places.variable(key)) {
                    (Some(problem), _) => format!("{problem}; {}", duration_fix(key, root, places)),
                    (None, Some(variable)) if schema::is_secret(key) => format!(
                        "a secret is not written into the configuration; name its source: {variable}__ENV=NAME or \
                         {variable}__FILE=/path"
                    ),
                    _ => message,
                };
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
    pub(super) fn text(&self, key: &KeyPath, places: &Places) -> String {
        match self {
            Self::UnknownKey(fix) => fix.text(key),
            Self::Missing(example) => missing(key, example.as_deref(), places),
            Self::InvalidValue(text) => text.clone(),
        }
    }
}

/// Returns the text for an array of tables in place of one table.
fn single_table(key: &KeyPath) -> String {
    let header = key.header();
    if header == "broker.clients"
        && let Some(Meaning::Write(fix)) = meaning(&key.name("client_id"), Written::Value)
    {
        return format!("{key} is no list of clients; {fix}");
    }
    format!("{key} is only one table; write [{header}] instead of [[{header}]]")
}

/// Returns the text for a value, or for a member of a table, that is not one of the known ones.
fn unknown_value(
    key: &KeyPath,
    name: &str,
    known: &[&str],
    root: &Value,
    places: &Places,
) -> String {
    let last = last_name(key);
    let listed = match schema::choices(key) {
        choices if choices.is_empty() => known.iter().map(|name| toml_text::string(name)).collect(),
        choices => choices,
    }
    .join(", ");
    let suggestion = meant_value::word(name, known).or_else(|| similar(name, known, SIMILAR_VALUE));
    if let Some(members) = get(root, key).and_then(Value::as_dict) {
        let member = toml_text::string(name);
        let url = members
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| is_plain_url(text));
        let fix = match (meaning(&key.name(name), Written::Value), suggestion) {
            (Some(_), _)
                if known.contains(&"http")
                    && let Some(url) = url =>
            {
                format!("write {last} = {{ http = {} }}", toml_text::string(url))
            }
            (Some(Meaning::Write(fix)), _) => fix.to_owned(),
            (_, Some(suggestion)) => format!("did you mean `{suggestion}`? known are {listed}"),
            _ => format!("write one of {listed}"),
        };
        return format!("{key} has the unknown member {member}; {fix}");
    }
    // These values are written as tables.
    for (form, is_meant) in [
        ("http", name.contains("://")),
        ("unix", name.starts_with('/')),
        ("file", name.contains('/') || name.contains('.')),
    ] {
        if known.contains(&form) && is_meant {
            let fix = match places.variable(key) {
                Some(variable) => format!("set {variable}__{}=…", form.to_ascii_uppercase()),
                None if form == "http" && is_plain_url(name) => {
                    format!("write {last} = {{ http = {} }}", toml_text::string(name))
                }
                None => format!("write {last} = {{ {form} = \"…\" }}"),
            };
            return format!("{key} is a string; {fix}");
        }
    }
    match suggestion {
        Some(suggestion) => {
            format!("{key} has an unknown value; did you mean `{suggestion}`? known are {listed}")
        }
        None => format!("{key} has an unknown value; write one of {listed}"),
    }
}

/// Whether a text is a URL for HTTP without a part that may be secret.
fn is_plain_url(text: &str) -> bool {
    (text.starts_with("http://") || text.starts_with("https://")) && shown_url(text) == text
}

fn missing(key: &KeyPath, example: Option<&str>, places: &Places) -> String {
    match key.to_string().as_str() {
        "resource" => {
            "resource is missing; add a [[resource]] with `endpoint` and `upstream`".to_owned()
        }
        name => match example {
            Some(example) if places.variable(key).is_some() => {
                format!("{name} is missing; set {example}")
            }
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
    places: &Places,
) -> String {
    if matches!(found, Actual::Map)
        && schema::type_name(key) == Some("array")
        && places.lines().is_table(key)
    {
        let header = key.header();
        return format!("{key} is an array of tables; write [[{header}]] instead of [{header}]");
    }
    if matches!(found, Actual::Map)
        && schema::type_name(key) == Some("array")
        && places.lines().is_dotted_table(key)
    {
        let header = key.header();
        return format!(
            "{key} is an array of tables; write [[{header}]], and its keys below it without `{}.`",
            last_name(key)
        );
    }
    let such_as = || {
        example_for(key, root, places)
            .map(|example| format!(", such as {example}"))
            .unwrap_or_default()
    };
    let expected_text = match (found, expected_value(key, expected)) {
        (Actual::Seq, text) if text == "a string" => "one string".to_owned(),
        (_, text) => text,
    };
    if is_negative(found) && is_never_negative(expected) {
        return format!(
            "{key} must not be negative; expected {expected_text}{}",
            such_as()
        );
    }
    if let Some(fix) = meant_value::choice(key, found) {
        return format!("{key} is {}; {fix}", type_of(found));
    }
    let fix = match meant_value::fix(key, found, get(root, key), places) {
        Some(fix) => format!("; {fix}"),
        None if matches!(found, Actual::Map) && schema::type_name(key) == Some("array") => {
            let example = example_for(key, root, places).map(|example| format!(": {example}"));
            format!("; put brackets around it{}", example.unwrap_or_default())
        }
        None if matches!(found, Actual::Str(_)) && expected == "a sequence" => match such_as() {
            such_as if such_as.is_empty() => as_array(key, places),
            such_as => such_as,
        },
        None => {
            with_seconds(such_as(), &in_seconds(expected, found))
                + meant_value::for_default(key, get(root, key))
        }
    };
    format!("{key} is {}; expected {expected_text}{fix}", type_of(found))
}

/// Returns what the value of a key must be: one of a few values, or of a type, as serde names it.
fn expected_value(key: &KeyPath, expected: &str) -> String {
    let choices = schema::choices(key);
    if expected.starts_with("enum") && !choices.is_empty() {
        return format!("one of {}", choices.join(", "));
    }
    match expected_type(expected) {
        "a non-negative integer" if !schema::unit(key).is_empty() => "a number of bytes".to_owned(),
        "a non-negative integer" => match schema::range(key) {
            Some((least, most)) => format!("an integer from {least} to {most}"),
            None => "a non-negative integer".to_owned(),
        },
        name => name.to_owned(),
    }
}

/// Returns how to write a string as an array of strings, or as one of tables.
fn as_array(key: &KeyPath, places: &Places) -> String {
    if schema::keys_of(&key.index(0)).is_empty() {
        return "; put brackets around it".to_owned();
    }
    let header = key.header();
    match places.variable(key) {
        Some(_) => format!(" of tables; remove this variable, and write [[{header}]] in the file"),
        None => format!(" of tables; write [[{header}]]"),
    }
}

/// Returns the duration that a number probably is, in addition to the example.
fn in_seconds(expected: &str, found: &Actual) -> String {
    match found {
        Actual::Unsigned(number) if expected == Span::EXPECTED => or_seconds(*number),
        Actual::Signed(number) if expected == Span::EXPECTED => {
            u128::try_from(*number).map(or_seconds).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn or_seconds(number: u128) -> String {
    format!(", or \"{number}s\" if it is in seconds")
}

/// Returns what to write instead of a text that is not a duration.
fn duration_fix(key: &KeyPath, root: &Value, places: &Places) -> String {
    let number = get(root, key).and_then(Value::as_str);
    if let Some(length) = number.and_then(Span::from_iso_8601) {
        return format!("write it with units, as \"{length}\"");
    }
    let number = number.and_then(|text| text.trim().parse::<u128>().ok());
    let seconds = number.map(or_seconds).unwrap_or_default();
    let example = match (example(key, places), schema::example(key)) {
        (Some(example), _) if places.variable(key).is_some() => example,
        (_, Some(example)) => example.to_string(),
        _ => "\"30m\"".to_owned(),
    };
    let examples = with_seconds(example, &seconds);
    format!("write a number and a unit, such as {examples}")
}

/// Adds the duration in seconds to an example, unless it is the same.
fn with_seconds(example: String, seconds: &str) -> String {
    let same = seconds.split('"').nth(1).unwrap_or_default();
    let last = example.rsplit([' ', '=']).next().unwrap_or_default();
    if last.trim_matches('"') == same {
        example
    } else {
        example + seconds
    }
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

/// A line for the key, as in TOML, or the assignment of its variable, if that sets it. That of a
/// provider of the broker is for the kind of provider.
fn example_for(key: &KeyPath, root: &Value, places: &Places) -> Option<String> {
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
        ["resource", "rule", "claims"] => {
            Some("claims = [{ claim = \"groups\", one_of = [\"admins\"] }]".to_owned())
        }
        _ => None,
    }
    .or_else(|| example(key, places))
}

fn example(key: &KeyPath, places: &Places) -> Option<String> {
    let is_item = matches!(key.segments().last(), Some(Segment::Index(_)));
    let key = if is_item { &key.parent()? } else { key };
    let value = schema::example(key)?;
    if places.variable(key).is_some() {
        return variables::assignment(key, value);
    }
    Some(format!("{} = {}", last_name(key), toml_text::value(value)?))
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
