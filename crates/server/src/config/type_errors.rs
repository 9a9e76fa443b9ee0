//! All values of a configuration that do not have the type of their key, and all keys that are unknown or missing.

use figment::{
    Error,
    error::{Actual, Kind},
    value::{Dict, Tag, Value},
};

use super::{Config, Diagnostic, KeyPath, Segment, TomlLines, schema};

/// The most errors that are searched for. Each causes another reading of the configuration.
const MAX_ERRORS: usize = 100;

/// The similarity from which a name is suggested in place of another one, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.8;

/// The errors of a configuration, and the configuration without them.
pub(super) struct TypeErrors {
    pub(super) errors: Vec<Diagnostic>,
    /// With other values in place of the invalid ones; `None` if there are too many errors.
    pub(super) repaired: Option<Config>,
    /// The keys whose values were replaced or removed.
    pub(super) replaced: Vec<KeyPath>,
}

/// Reads a configuration whose values may not have their types.
pub(super) fn find(mut root: Value, lines: &TomlLines) -> TypeErrors {
    let mut found: Vec<Found> = Vec::new();
    let (mut repaired, mut replaced) = (None, Vec::new());
    for _ in 0..MAX_ERRORS {
        let error = match root.deserialize::<Config>() {
            Ok(config) => {
                repaired = Some(config);
                break;
            }
            Err(error) => error.into_iter().next(),
        };
        let Some(error) = error else { break };
        let key = key_of(&error, lines);
        if !found.iter().any(|known| key.starts_with(&known.key)) {
            let text = describe(&error, &key, &root, lines);
            let is_missing = matches!(error.kind, Kind::MissingField(_));
            found.push(Found { key: key.clone(), text, is_missing });
        }
        match repair(&mut root, &error, key, lines) {
            Some(key) => replaced.push(key),
            None => break,
        }
    }
    TypeErrors { errors: without_renamed(found), repaired, replaced }
}

struct Found {
    key: KeyPath,
    text: String,
    is_missing: bool,
}

/// Combines a missing key with the unknown key that was written in its place, or in another table.
fn without_renamed(mut found: Vec<Found>) -> Vec<Diagnostic> {
    let missing: Vec<KeyPath> = found.iter().filter(|found| found.is_missing).map(|found| found.key.clone()).collect();
    for key in missing {
        let (name, table) = (last_name(&key).to_owned(), key.parent());
        let is_unknown = |found: &Found| !found.is_missing && !schema::has(&found.key);
        // A top-level key in a table has an error that names it.
        let is_moved = table.as_ref().is_some_and(KeyPath::is_root)
            && found.iter().any(|other| is_unknown(other) && last_name(&other.key) == name);
        let suggested = format!("did you mean `{name}`?");
        let in_table = |other: &Found| is_unknown(other) && other.key.parent() == table;
        let is_suggested = found.iter().any(|other| in_table(other) && other.text.ends_with(&suggested));
        let mut unknown = found.iter_mut().filter(|other| in_table(other));
        let only = match (unknown.next(), unknown.next()) {
            (Some(only), None) if !is_moved && !is_suggested => Some(only),
            _ => None,
        };
        let is_renamed = only.is_some();
        if let Some(only) = only {
            only.text = format!("{} is not a known key; did you mean `{name}`, which is missing?", only.key);
        }
        if is_moved || is_suggested || is_renamed {
            found.retain(|other| other.key != key);
        }
    }
    found.into_iter().map(|Found { key, text, .. }| Diagnostic { key, text }).collect()
}

/// The key that an error is about.
fn key_of(error: &Error, lines: &TomlLines) -> KeyPath {
    let path = KeyPath::from_names(error.path.iter().map(String::as_str));
    // An array of tables in place of one table is read as the values of the table.
    if let Some(table) = path.parent().filter(|table| is_table_in_array(table, lines)) {
        return table;
    }
    let is_last = |name: &str| matches!(path.segments().last(), Some(Segment::Name(last)) if last == name);
    match &error.kind {
        Kind::UnknownField(name, _) if !is_last(name) => path.name(name),
        Kind::MissingField(name) if !is_last(name) => path.name(name),
        // The name of the form is wrong, not its value.
        Kind::UnknownVariant(name, _) if is_last(name) => path.parent().unwrap_or_default(),
        _ => path,
    }
}

fn is_table_in_array(key: &KeyPath, lines: &TomlLines) -> bool {
    lines.is_array_of_tables(key) && schema::type_name(key) == Some("object")
}

/// Replaces the value that causes an error, so that others are found. Returns its key; `None` if this is not possible.
fn repair(root: &mut Value, error: &Error, mut key: KeyPath, lines: &TomlLines) -> Option<KeyPath> {
    let tag = Tag::Default;
    let replacements = [
        None,
        Some(Value::from("http://127.0.0.1")),
        Some(Value::from("demo")),
        Some(Value::from("stdout")),
        Some(Value::Array(tag, Vec::new())),
        Some(Value::from(1_u8)),
        Some(Value::from("1s")),
        Some(Value::Dict(tag, Dict::new())),
        Some(Value::from(true)),
    ];
    let is_unknown = matches!(error.kind, Kind::UnknownField(..));
    loop {
        for replacement in &replacements {
            let mut repaired = root.clone();
            if !set(&mut repaired, key.segments(), replacement.clone()) {
                continue;
            }
            let next = repaired.deserialize::<Config>().err().and_then(|error| error.into_iter().next());
            if is_unknown || next.is_none_or(|next| key_of(&next, lines) != key) {
                *root = repaired;
                return Some(key);
            }
        }
        key = key.parent().filter(|parent| !parent.is_root())?;
    }
}

/// Sets or removes a value. Returns whether its table or array exists.
fn set(root: &mut Value, path: &[Segment], value: Option<Value>) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let container = above.iter().try_fold(root, |at, segment| match (at, segment) {
        (Value::Dict(_, dict), Segment::Name(name)) => dict.get_mut(name),
        (Value::Dict(_, dict), Segment::Index(position)) => dict.get_mut(&position.to_string()),
        (Value::Array(_, items), Segment::Index(position)) => items.get_mut(*position),
        _ => None,
    });
    match (container, last, value) {
        (Some(Value::Dict(_, dict)), Segment::Name(name), Some(value)) => {
            dict.insert(name.clone(), value);
            true
        }
        (Some(Value::Dict(_, dict)), Segment::Name(name), None) => dict.remove(name).is_some(),
        (Some(Value::Array(_, items)), Segment::Index(position), Some(value)) => {
            items.get_mut(*position).map(|item| *item = value).is_some()
        }
        _ => false,
    }
}

fn describe(error: &Error, key: &KeyPath, root: &Value, lines: &TomlLines) -> String {
    if is_table_in_array(key, lines) {
        return format!("{key} is a single table; write [{key}] instead of [[{key}]]");
    }
    match &error.kind {
        Kind::UnknownField(name, known) => unknown_key(key, name, known, lines),
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

fn unknown_key(key: &KeyPath, name: &str, known: &[&str], lines: &TomlLines) -> String {
    let table = key.parent().unwrap_or_default();
    if !table.is_root() && schema::keys_of(&KeyPath::default()).contains(&name) {
        let first = lines.first_table().map(|(line, header)| format!(", {header} in line {line}")).unwrap_or_default();
        return format!("{key} is a top-level key; move it above the first table{first}");
    }
    let (elsewhere, similar) = (schema::tables_with(name), similar(name, known));
    if !elsewhere.is_empty() && (similar.is_none() || !table.is_root()) {
        return format!("{key} is not a known key; move it to {}", elsewhere.join(" or "));
    }
    match similar {
        Some(similar) => format!("{key} is not a known key; did you mean `{similar}`?"),
        None => format!("{key} is not a known key; remove it, or use one of {}", known.join(", ")),
    }
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
    match similar(name, known) {
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
    // The names of the table, without positions.
    let names: Vec<&str> = key
        .segments()
        .iter()
        .filter_map(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        })
        .collect();
    let table = names.join(".");
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

fn get<'a>(root: &'a Value, key: &KeyPath) -> Option<&'a Value> {
    key.segments().iter().try_fold(root, |at, segment| match (at, segment) {
        (Value::Dict(_, dict), Segment::Name(name)) => dict.get(name),
        (Value::Array(_, items), Segment::Index(position)) => items.get(*position),
        _ => None,
    })
}

fn last_name(key: &KeyPath) -> &str {
    let name = |segment| match segment {
        &Segment::Name(ref name) => Some(name.as_str()),
        Segment::Index(_) => None,
    };
    key.segments().iter().rev().find_map(name).unwrap_or_default()
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

/// The type of a value. The value itself may be a misplaced secret.
fn type_of(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "a boolean",
        Actual::Unsigned(_) | Actual::Signed(_) => "an integer",
        Actual::Float(_) => "a floating-point number",
        Actual::Char(_) | Actual::Str(_) => "a string",
        Actual::Seq => "an array",
        Actual::Map | Actual::Enum => "a table",
        _ => "something else",
    }
}

/// The expected type in the words of TOML.
fn expected_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "path string" => "a string",
        expected if expected.starts_with("struct ") || expected == "a map" => "a table",
        expected if expected == "enum" || expected.starts_with("enum ") => "one of its names, or a table",
        expected => expected,
    }
}

/// The known name that is most similar to the written one, if it is similar enough.
fn similar<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &&'a str| strsim::jaro_winkler(written, name);
    let best = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= MIN_SIMILARITY).then_some(best)
}

#[cfg(test)]
#[expect(clippy::result_large_err, reason = "figment's jail wants its own error")]
mod tests {
    use std::path::Path;

    use figment::Jail;

    use crate::config::{Overrides, load};

    /// J9, J10: all errors are found at once, each with its key, its place and the fix.
    #[test]
    fn all_errors_are_found() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "portcullis.toml",
                r#"lisen = "127.0.0.1:3000"
                shutdown_timeout = 5
                [[issuer]]
                issuer = "https://a.example"
                algorithms = "RS256"
                [[issuer]]
                issuer = 7
                leeway = 7
                client_secret = "hunter2"
                [[resource]]
                endpoint = "/mcp"
                upstream = "http://127.0.0.1:8000/mcp"
                required_scope = []
                revisions = ["a", 5, 6]
                max_body = 5
                [[resource]]
                endpoint = "/other"
                [session]
                base_url = "http://127.0.0.1:3000"
                max_total = "many"
                "#,
            )?;
            jail.set_env("PORTCULLIS_WORKERS", "many");
            let errors = load(Path::new("portcullis.toml"), Overrides::default()).err().unwrap().located();
            let errors: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
            for (place, words) in [
                ("portcullis.toml:1: lisen is not a known key", "did you mean `listen`?"),
                (
                    "portcullis.toml:2: shutdown_timeout is an integer; expected a duration",
                    "such as shutdown_timeout = \"10s\"",
                ),
                ("portcullis.toml:5: issuer[0].algorithms is a string", "algorithms = [\"RS256\"]"),
                ("portcullis.toml:7: issuer[1].issuer is an integer", "issuer = \"https://"),
                ("portcullis.toml:8: issuer[1].leeway is an integer", "leeway = \"10s\""),
                ("portcullis.toml:9: issuer[1].client_secret: ", "{ env = \"NAME\" }"),
                (
                    "portcullis.toml:12: resource[0].upstream is a string",
                    "write upstream = { http = \"http://127.0.0.1:8000/mcp\" }",
                ),
                (
                    "portcullis.toml:13: resource[0].required_scope is not a known key",
                    "did you mean `required_scopes`?",
                ),
                ("portcullis.toml:14: resource[0].revisions[1] is an integer", "expected a string"),
                ("portcullis.toml:14: resource[0].revisions[2] is an integer", "expected a string"),
                ("portcullis.toml:15: resource[0].max_body is not a known key", "move it to [limits]"),
                ("portcullis.toml:16: resource[1].upstream is missing", "add upstream = "),
                (
                    "portcullis.toml:19: session.base_url is a top-level key",
                    "move it above the first table, [[issuer]] in line 3",
                ),
                (
                    "portcullis.toml:20: session.max_total is a string",
                    "expected a non-negative integer, such as max_total = 100000",
                ),
                ("PORTCULLIS_WORKERS: workers is a string", "expected a non-negative integer"),
            ] {
                let has = |error: &String| error.starts_with(place) && error.contains(words);
                assert!(errors.iter().any(has), "{place} {words}: {errors:#?}");
            }
            assert_eq!(errors.len(), 15, "{errors:#?}");
            assert!(errors.iter().all(|error| !error.contains('\n') && !error.contains("hunter2")), "{errors:#?}");
            Ok(())
        });
    }
}
