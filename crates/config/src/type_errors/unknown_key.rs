//! [`KeyFix`]: how to fix a key that is not known.

use figment::value::Value;

use super::{
    foreign_names::{Meaning, meaning},
    lookup::{get, last_name},
};
use crate::{
    KeyPath, Places, schema,
    similar::{reworded, similar},
    variables,
};

/// The similarity from which a key is suggested in place of another one, from 0 to 1. Chosen with
/// the mistakes in `command/check/mistakes`: their misspellings are similar by 0.89 (`Listen`) or
/// more, and other words for the same thing (`timeout` for `idle_timeout`) by 0.77 or less.
const SIMILAR_KEY: f64 = 0.8;
/// The similarity from which a key is a misspelling even if another table has a key of exactly this
/// name. Above that of different keys with a common beginning (`required_scopes` and
/// `required_claims`: 0.88), and at most that of one changed character (`jwks_url` and `jwks_uri`:
/// 0.95).
const TYPO: f64 = 0.95;

/// How to fix a key that is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyFix {
    /// What to write instead of a name of another program, or of a key that is close to a known
    /// one.
    Write(String),
    /// It is a top-level key in a table. With the line and the header of the first table.
    MoveAbove(Option<(usize, String)>),
    /// It is a key of other tables, with these headers.
    MoveTo(Vec<String>),
    /// It is a table that belongs into another one, with one of these headers.
    WriteHeader(Vec<String>),
    /// It is probably a misspelling of this key of the same table.
    Rename(&'static str),
    /// As [`Self::Rename`], for a string in place of an array of strings.
    RenameToArray(&'static str),
    /// It is the name of a table at the top of the file, with this header. With whether the file
    /// has a table of this name.
    TopLevelTable(String, bool),
    /// It is probably another name for this key of the same table, which is missing.
    RenameToMissing(String),
    /// It is a table with top-level keys.
    RemoveHeader,
    /// Nothing similar is known. With the known keys of the table.
    Remove(&'static [&'static str]),
}

impl KeyFix {
    /// Returns the fix for `key`, whose last name is not one of those that its table knows.
    pub(super) fn of(
        key: &KeyPath,
        name: &str,
        known: &'static [&'static str],
        root: &Value,
        places: &Places,
    ) -> Self {
        let table = key.parent().unwrap_or_default();
        let lines = places.lines();
        let is_table = lines.is_table(key) || lines.is_array_of_tables(key);
        let of_variable = || {
            places.variable(key)?;
            variables::of_secret(key, root).or_else(|| variables::meant(&table, name))
        };
        if let Some(fix) = of_variable().or_else(|| secret_source(&table, name, known)) {
            return Self::Write(fix);
        }
        match meaning(key, is_table) {
            Some(Meaning::Key(name)) => return Self::Rename(name),
            Some(Meaning::Write(fix)) => return Self::Write(fix.to_owned()),
            None => {}
        }
        let is_top_level = !table.is_root() && schema::keys_of(&KeyPath::default()).contains(&name);
        let top_level_table = top_level_table(name).filter(|_| is_top_level);
        let typo = similar(name, known, TYPO).or_else(|| reworded(name, known));
        let value = get(root, key);
        let is_string = value.is_some_and(|value| value.as_str().is_some());
        let has_keys = value.is_some_and(|value| value.as_dict().is_some());
        let rename = |known| match schema::type_name(&table.name(known)) {
            Some("array") if is_string => Self::RenameToArray(known),
            _ => Self::Rename(known),
        };
        if let Some(header) = top_level_table {
            return match typo.filter(|_| !is_table && !has_keys) {
                Some(known) => rename(known),
                None => Self::TopLevelTable(header, is_table),
            };
        }
        if is_top_level {
            return Self::MoveAbove(
                lines
                    .first_table()
                    .map(|(line, header)| (line, header.to_owned())),
            );
        }
        // A known name of another table can be a misspelling here.
        if let Some(known) = typo {
            return rename(known);
        }
        let headers = within(schema::tables_named(name), &table);
        if is_table && !headers.is_empty() {
            return Self::WriteHeader(headers);
        }
        let elsewhere = within(schema::tables_with(name), &table);
        if !elsewhere.is_empty() {
            return Self::MoveTo(elsewhere);
        }
        match similar(name, known, SIMILAR_KEY) {
            Some(suggestion) => rename(suggestion),
            None if holds_top_level_keys(key, root, places) => Self::RemoveHeader,
            None => Self::Remove(known),
        }
    }

    /// Whether the text names the missing key `name` of the same table.
    pub(super) fn names(&self, name: &str) -> bool {
        matches!(self, Self::Write(fix) if fix.contains(&format!("{name} = ")))
    }

    /// Whether the key can be another name for a missing key of its table: it has no better fix.
    pub(super) fn can_be_renamed(&self) -> bool {
        matches!(
            self,
            Self::MoveTo(_) | Self::WriteHeader(_) | Self::RemoveHeader | Self::Remove(_)
        )
    }

    /// Returns the text for the unknown `key`.
    pub(super) fn text(&self, key: &KeyPath) -> String {
        match self {
            Self::Write(fix) => format!("{key} is not a known key; {fix}"),
            Self::MoveAbove(first) => {
                let first = first
                    .as_ref()
                    .map(|(line, header)| format!(", {header} in line {line}"));
                format!(
                    "{key} is a top-level key; move it above the first table{}",
                    first.unwrap_or_default()
                )
            }
            Self::MoveTo(tables) => format!(
                "{key} is not a known key; move it to {}",
                tables.join(" or ")
            ),
            Self::WriteHeader(headers) => {
                format!("{key} is not a known table; write {}", headers.join(" or "))
            }
            Self::Rename(name) => format!("{key} is not a known key; did you mean `{name}`?"),
            Self::RenameToArray(name) => format!(
                "{key} is not a known key; did you mean `{name}`? It is an array: {name} = [\"…\"]"
            ),
            Self::TopLevelTable(header, true) => format!(
                "{key} is not a known table; write {header} instead of {}",
                header.replace(last_name(key), &key.header())
            ),
            Self::TopLevelTable(header, false) => format!(
                "{key} is not a known key; remove it, or write its keys in {header}, a table at the top of the file"
            ),
            Self::RenameToMissing(name) => {
                format!("{key} is not a known key; did you mean `{name}`, which is missing?")
            }
            Self::RemoveHeader => {
                format!(
                    "{key} is not a known table; its keys belong above all tables: remove the header [{key}]"
                )
            }
            Self::Remove(known) => format!(
                "{key} is not a known key; remove it, or use one of {}",
                known.join(", ")
            ),
        }
    }
}

/// Returns the header of the table at the top of the file with this name, such as `[[issuer]]`.
fn top_level_table(name: &str) -> Option<String> {
    let key = KeyPath::default().name(name);
    if !schema::keys_of(&key.index(0)).is_empty() {
        return Some(format!("[[{name}]]"));
    }
    (!schema::keys_of(&key).is_empty()).then(|| format!("[{name}]"))
}

/// Returns the headers that are in `table`, if there are some: the key was probably written before
/// their header instead of after it. Otherwise all.
fn within(mut headers: Vec<String>, table: &KeyPath) -> Vec<String> {
    let within = format!("{}.", table.header());
    let is_within = |header: &String| header.trim_start_matches('[').starts_with(&within);
    if headers.iter().any(is_within) {
        headers.retain(is_within);
    }
    headers
}

/// The fix for a secret's key with its source in the name, such as `client_secret_file`.
fn secret_source(table: &KeyPath, name: &str, known: &[&str]) -> Option<String> {
    [("_env", "env", "NAME"), ("_file", "file", "/path")]
        .into_iter()
        .find_map(|(ending, source, example)| {
            let stem = name
                .strip_suffix(ending)
                .filter(|stem| known.contains(stem))?;
            let source = format!("{{ {source} = \"{example}\" }}");
            let key = table.name(stem);
            if schema::is_secret(&key) {
                Some(format!("write {stem} = {source}"))
            } else {
                schema::is_secret(&key.index(0)).then(|| format!("write {stem} = [{source}]"))
            }
        })
}

/// Whether this is a table at the top of the file that contains keys that belong above all tables.
fn holds_top_level_keys(key: &KeyPath, root: &Value, places: &Places) -> bool {
    let top_level = schema::keys_of(&KeyPath::default());
    let is_at_top =
        key.parent().is_some_and(|parent| parent.is_root()) && places.lines().is_table(key);
    let members = get(root, key).and_then(Value::as_dict);
    is_at_top
        && members.is_some_and(|members| {
            members
                .keys()
                .any(|name| top_level.contains(&name.as_str()))
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use figment::Figment;

    use super::*;
    use crate::TomlFile;

    const RESOURCE: &[&str] = &["endpoint", "required_claims", "required_scopes", "upstream"];

    #[test]
    fn each_unknown_key_has_its_fix() {
        let fix = |file: &str, key: &str, known: &'static [&'static str]| {
            let file = TomlFile::parse(Path::new(""), file).unwrap();
            let root: Value = Figment::from(&file).extract().unwrap();
            let path = KeyPath::parse(key);
            let places = Places::new(Path::new(""), file.lines, root.clone(), Figment::new());
            KeyFix::of(&path, last_name(&path), known, &root, &places)
        };
        let synonym =
            KeyFix::Write("write address and port in listen = \"127.0.0.1:3000\"".to_owned());
        assert_eq!(fix("port = 1", "port", &["listen"]), synonym);
        let move_above = KeyFix::MoveAbove(Some((1, "[session]".to_owned())));
        assert_eq!(
            fix("[session]\nworkers = 1", "session.workers", &["keys"]),
            move_above
        );
        let move_to_limits = KeyFix::MoveTo(vec!["[limits]".to_owned()]);
        assert_eq!(
            fix(
                "[session]\nmax_body = 1",
                "session.max_body",
                &["max_total"]
            ),
            move_to_limits
        );
        assert_eq!(
            fix("lisen = 1", "lisen", &["listen"]),
            KeyFix::Rename("listen")
        );

        // Another table has this key, but here it is a misspelling.
        let required_scope = fix(
            "[[resource]]\nrequired_scope = 1",
            "resource[0].required_scope",
            RESOURCE,
        );
        assert_eq!(required_scope, KeyFix::Rename("required_scopes"));
        assert_eq!(
            fix("endpoints = 1", "endpoints", &["endpoint"]),
            KeyFix::Rename("endpoint")
        );
        // A key of another table is not a misspelling of one that only begins alike.
        assert_eq!(
            fix("response_grace = 1", "response_grace", &["resource"]),
            KeyFix::MoveTo(vec!["[[resource]]".to_owned()])
        );
        assert_eq!(
            fix("[[rule]]\nname = 1", "rule", &["resource"]),
            KeyFix::WriteHeader(vec!["[[resource.rule]]".to_owned()])
        );
        let session = "[session]".to_owned();
        assert_eq!(
            fix(
                "[[resource]]\n[resource.session]",
                "resource[0].session",
                RESOURCE
            ),
            KeyFix::TopLevelTable(session.clone(), true)
        );
        assert_eq!(
            fix("[[resource]]\nsession = 1", "resource[0].session", RESOURCE),
            KeyFix::TopLevelTable(session, false)
        );
        assert_eq!(
            fix("[server]\nlisten = 1", "server", &["listen"]),
            KeyFix::RemoveHeader
        );
        assert_eq!(
            fix("nothing = 1", "nothing", &["listen", "workers"]),
            KeyFix::Remove(&["listen", "workers"])
        );
    }

    /// Below an array of tables, too.
    #[test]
    fn tables_within_the_table_come_first() {
        let tables_with =
            |name, table: &str| within(schema::tables_with(name), &KeyPath::parse(table));
        assert_eq!(tables_with("cooldown", "issuer[0]"), ["[issuer.jwks]"]);
        let everywhere = schema::tables_with("scopes");
        let within = tables_with("scopes", "resource[0]");
        assert!(
            within.iter().all(|header| header.contains("resource.")),
            "{within:?}"
        );
        assert_eq!(tables_with("scopes", "session"), everywhere);
        assert_eq!(tables_with("scopes", ""), everywhere);
    }

    #[test]
    fn the_source_of_a_secret_is_not_in_the_name() {
        let fix =
            |table: &str, name, known: &[&str]| secret_source(&KeyPath::parse(table), name, known);
        assert_eq!(
            fix("issuer[0]", "client_secret_file", &["client_secret"]).as_deref(),
            Some("write client_secret = { file = \"/path\" }")
        );
        assert_eq!(
            fix("session", "keys_env", &["keys"]).as_deref(),
            Some("write keys = [{ env = \"NAME\" }]")
        );
        assert_eq!(fix("issuer[0]", "client_id_env", &["client_id"]), None);
    }
}
