//! All values of a configuration that do not have the type of their key, and all keys that are
//! unknown or missing.

mod foreign_names;
mod lookup;
mod meant_value;
mod other_tables;
mod problem;
mod restriction;
mod unknown_key;

use figment::{
    Error,
    error::Kind,
    value::{Dict, Tag, Value},
};

use super::{Config, Diagnostic, KeyPath, Places, Segment, TomlLines};
use lookup::last_name;
pub(super) use meant_value::{no_duration, word as meant_choice};
use problem::{Problem, is_table_in_array};
use unknown_key::KeyFix;

/// The most errors that are searched for. Each causes another reading of the configuration.
const MAX_ERRORS: usize = 100;

/// The errors of a configuration, and the configuration without them.
pub(super) struct TypeErrors {
    /// One for each key. Empty if all values have their types.
    pub(super) errors: Vec<Diagnostic>,
    /// With other values in place of the invalid ones; `None` if one cannot be replaced, or there
    /// are too many.
    pub(super) repaired: Option<Config>,
    /// The keys whose values were replaced or removed.
    pub(super) replaced: Vec<KeyPath>,
}

/// Reads a configuration whose values may not have their types.
///
/// serde stops at the first error. So each invalid value is replaced by a valid one, and the
/// configuration is read again. The number of errors is bounded.
pub(super) fn find(mut root: Value, places: &Places) -> TypeErrors {
    let lines = places.lines();
    let mut found: Vec<Found> = Vec::new();
    let mut repaired = None;
    let mut replaced = Vec::new();
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
            found.push(Found {
                key: key.clone(),
                problem: Problem::of(&error, &key, &root, places),
            });
        }
        match repair(&mut root, &error, key, lines) {
            Some(key) => replaced.push(key),
            None => break,
        }
    }
    TypeErrors {
        errors: without_renamed(found, places),
        repaired,
        replaced,
    }
}

/// A key with a problem.
struct Found {
    key: KeyPath,
    problem: Problem,
}

impl Found {
    /// The fix, if the key is unknown.
    fn fix(&self) -> Option<&KeyFix> {
        match &self.problem {
            Problem::UnknownKey(fix) => Some(fix),
            Problem::Missing(_) | Problem::InvalidValue(_) => None,
        }
    }
}

/// Combines a missing key with the unknown key that was written in its place, or in another table.
fn without_renamed(mut found: Vec<Found>, places: &Places) -> Vec<Diagnostic> {
    let is_missing = |found: &&Found| matches!(found.problem, Problem::Missing(_));
    let missing: Vec<KeyPath> = found
        .iter()
        .filter(is_missing)
        .map(|found| found.key.clone())
        .collect();
    for key in missing {
        let name = last_name(&key);
        let table = key.parent();
        // A top-level key in a table has an error that names it.
        let is_moved = table.as_ref().is_some_and(KeyPath::is_root)
            && found.iter().any(|other| {
                other.fix().is_some_and(|fix| {
                    last_name(&other.key) == name || *fix == KeyFix::RemoveHeader
                })
            });
        let is_named = found.iter().any(|other| {
            other.key.parent() == table && other.fix().is_some_and(|fix| fix.names(name))
        });
        if is_moved || is_named {
            found.retain(|other| other.key != key);
            continue;
        }
        if let Some(position) = position_of_renamed(&found, name, table.as_ref()) {
            found[position].problem = Problem::UnknownKey(KeyFix::RenameToMissing(name.to_owned()));
            found.retain(|other| other.key != key);
        }
    }
    let diagnostic = |Found { key, problem }| Diagnostic {
        text: problem.text(&key, places),
        key,
    };
    found.into_iter().map(diagnostic).collect()
}

/// Returns the position of the unknown key of the table that is the missing key under another name.
fn position_of_renamed(found: &[Found], name: &str, table: Option<&KeyPath>) -> Option<usize> {
    let is_meant = |fix: &KeyFix| matches!(fix, KeyFix::Rename(suggested) | KeyFix::RenameToArray(suggested) if *suggested == name);
    found
        .iter()
        .position(|other| other.key.parent().as_ref() == table && other.fix().is_some_and(is_meant))
}

/// The key that an error is about.
fn key_of(error: &Error, lines: &TomlLines) -> KeyPath {
    let path = KeyPath::from_names(error.path.iter().map(String::as_str));
    // An array of tables in place of one table is read as the values of the table.
    if let Some(table) = path
        .parent()
        .filter(|table| is_table_in_array(table, lines))
    {
        return table;
    }
    let is_last =
        |name: &str| matches!(path.segments().last(), Some(Segment::Name(last)) if last == name);
    match &error.kind {
        Kind::UnknownField(name, _) if !is_last(name) => path.name(name),
        Kind::MissingField(name) if !is_last(name) => path.name(name),
        // The name of the form is wrong, not its value.
        Kind::UnknownVariant(name, _) if is_last(name) => path.parent().unwrap_or_default(),
        _ => path,
    }
}

/// Replaces the value that causes an error, so that others are found. Returns its key; `None` if
/// this is not possible.
fn repair(root: &mut Value, error: &Error, mut key: KeyPath, lines: &TomlLines) -> Option<KeyPath> {
    let tag = Tag::Default;
    let secret = Dict::from([("env".to_owned(), Value::from("NAME"))]);
    let replacements = [
        None,
        Some(Value::from("http://127.0.0.1")),
        Some(Value::from("demo")),
        Some(Value::from("stdout")),
        Some(Value::Array(tag, Vec::new())),
        Some(Value::from(1_u8)),
        Some(Value::from("1s")),
        Some(Value::Dict(tag, secret)),
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
            let next = repaired
                .deserialize::<Config>()
                .err()
                .and_then(|error| error.into_iter().next());
            // An error of a table around it is one of the replacement.
            let is_around = |next: KeyPath| !next.is_root() && key.starts_with(&next);
            if is_unknown || next.is_none_or(|next| !is_around(key_of(&next, lines))) {
                *root = repaired;
                return Some(key);
            }
        }
        key = key.parent().filter(|parent| !parent.is_root())?;
    }
}

/// Sets or removes a value. Returns whether its table or array exists.
fn set(root: &mut Value, path: &[Segment], value: Option<Value>) -> bool {
    let Some((last, above)) = path.split_last() else {
        return false;
    };
    let container = above
        .iter()
        .try_fold(root, |at, segment| match (at, segment) {
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

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use std::path::Path;

    use crate::{Overrides, load};
    use figment::Jail;

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
            let errors = load(Path::new("portcullis.toml"), Overrides::default())
                .err()
                .unwrap()
                .located();
            let errors: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
            for (place, words) in [
                (
                    "portcullis.toml:1: lisen is not a known key",
                    "did you mean `listen`?",
                ),
                (
                    "portcullis.toml:2: shutdown_timeout is an integer; expected a duration",
                    "such as shutdown_timeout = \"10s\"",
                ),
                (
                    "portcullis.toml:5: issuer[0].algorithms is a string",
                    "algorithms = [\"RS256\"]",
                ),
                (
                    "portcullis.toml:7: issuer[1].issuer is an integer",
                    "issuer = \"https://",
                ),
                (
                    "portcullis.toml:8: issuer[1].leeway is an integer",
                    "leeway = \"10s\"",
                ),
                (
                    "portcullis.toml:9: issuer[1].client_secret: ",
                    "{ env = \"NAME\" }",
                ),
                (
                    "portcullis.toml:12: resource[0].upstream is a string",
                    "write upstream = { http = \"http://127.0.0.1:8000/mcp\" }",
                ),
                (
                    "portcullis.toml:13: resource[0].required_scope is not a known key",
                    "did you mean `required_scopes`?",
                ),
                (
                    "portcullis.toml:14: resource[0].revisions[1] is an integer",
                    "expected a string",
                ),
                (
                    "portcullis.toml:14: resource[0].revisions[2] is an integer",
                    "expected a string",
                ),
                (
                    "portcullis.toml:15: resource[0].max_body is not a known key",
                    "move it to [limits]",
                ),
                (
                    "portcullis.toml:16: resource[1].upstream is missing",
                    "add upstream = ",
                ),
                (
                    "portcullis.toml:19: session.base_url is a top-level key",
                    "move it above the first table, [[issuer]] in line 3",
                ),
                (
                    "portcullis.toml:20: session.max_total is a string",
                    "expected an integer from 1 to 10000000, such as max_total = 100000",
                ),
                (
                    "PORTCULLIS_WORKERS: workers is a string",
                    "expected an integer from 1 to 256",
                ),
            ] {
                let has = |error: &String| error.starts_with(place) && error.contains(words);
                assert!(errors.iter().any(has), "{place} {words}: {errors:#?}");
            }
            assert_eq!(errors.len(), 15, "{errors:#?}");
            assert!(
                errors
                    .iter()
                    .all(|error| !error.contains('\n') && !error.contains("hunter2")),
                "{errors:#?}"
            );
            Ok(())
        });
    }
}
