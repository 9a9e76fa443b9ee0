//! [`KeyFix`]: how to fix a key that is not known.

use figment::value::Value;

use super::lookup::{get, last_name};
use crate::{KeyPath, Segment, TomlLines, schema, similar::similar};

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
    /// The name is known from other programs.
    Synonym(&'static str),
    /// It is a top-level key in a table. With the line and the header of the first table.
    MoveAbove(Option<(usize, String)>),
    /// It is a key of other tables, with these headers.
    MoveTo(Vec<String>),
    /// It is probably a misspelling of this key of the same table.
    Rename(&'static str),
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
        lines: &TomlLines,
    ) -> Self {
        let table = key.parent().unwrap_or_default();
        if let Some(fix) = synonym(key) {
            return Self::Synonym(fix);
        }
        if !table.is_root() && schema::keys_of(&KeyPath::default()).contains(&name) {
            return Self::MoveAbove(
                lines
                    .first_table()
                    .map(|(line, header)| (line, header.to_owned())),
            );
        }
        let (elsewhere, suggestion) =
            (tables_with(name, &table), similar(name, known, SIMILAR_KEY));
        let is_typo = similar(name, known, TYPO).is_some();
        // At the top level, a similar key wins: the name of a key in a table is seldom written
        // there without its table.
        if !elsewhere.is_empty() && !is_typo && (suggestion.is_none() || !table.is_root()) {
            return Self::MoveTo(elsewhere);
        }
        match suggestion {
            Some(suggestion) => Self::Rename(suggestion),
            None if holds_top_level_keys(key, root, lines) => Self::RemoveHeader,
            None => Self::Remove(known),
        }
    }

    /// Returns the text for the unknown `key`.
    pub(super) fn text(&self, key: &KeyPath) -> String {
        match self {
            Self::Synonym(fix) => format!("{key} is not a known key; {fix}"),
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
            Self::Rename(name) => format!("{key} is not a known key; did you mean `{name}`?"),
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

/// Returns the headers of the tables with a key of this name. If some are in `table`, only those:
/// the key was probably written before their header instead of after it.
fn tables_with(name: &str, table: &KeyPath) -> Vec<String> {
    let mut found = schema::tables_with(name);
    let within = format!("{}.", table.header());
    let is_within = |header: &String| header.trim_start_matches('[').starts_with(&within);
    if found.iter().any(is_within) {
        found.retain(is_within);
    }
    found
}

/// The fix for a name that other programs use.
pub(super) fn synonym(key: &KeyPath) -> Option<&'static str> {
    let table = key.parent().unwrap_or_default();
    let is_resource =
        matches!(table.segments().first(), Some(Segment::Name(first)) if first == "resource");
    Some(match last_name(key) {
        "port" | "bind" | "address" if table.is_root() => {
            "write address and port in listen = \"127.0.0.1:3000\""
        }
        "log" | "logging" | "log_level" if table.is_root() => {
            "remove it, and set the environment variable PORTCULLIS_LOG, such as PORTCULLIS_LOG=debug"
        }
        "metrics" | "prometheus" if table.is_root() => "write [admin], which serves /metrics",
        "cors" if table.is_root() || is_resource => {
            "remove it; allowed_origins of [[resource]] narrows the origins"
        }
        "enabled" | "enable" if !table.is_root() => {
            "remove it; a table takes effect by being in the file"
        }
        _ => return None,
    })
}

/// Whether this is a table at the top of the file that contains keys that belong above all tables.
fn holds_top_level_keys(key: &KeyPath, root: &Value, lines: &TomlLines) -> bool {
    let top_level = schema::keys_of(&KeyPath::default());
    let is_at_top = key.parent().is_some_and(|parent| parent.is_root()) && lines.is_table(key);
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
            KeyFix::of(&path, last_name(&path), known, &root, &file.lines)
        };
        let synonym = KeyFix::Synonym("write address and port in listen = \"127.0.0.1:3000\"");
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
        // At the top level, a similar key wins over the same key of a table.
        assert_eq!(
            fix("endpoints = 1", "endpoints", &["endpoint"]),
            KeyFix::Rename("endpoint")
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
        assert_eq!(
            tables_with("cooldown", &KeyPath::parse("issuer[0]")),
            ["[issuer.jwks]"]
        );
        let everywhere = schema::tables_with("scopes");
        let within = tables_with("scopes", &KeyPath::parse("resource[0]"));
        assert!(
            within.iter().all(|header| header.contains("resource.")),
            "{within:?}"
        );
        assert_eq!(
            tables_with("scopes", &KeyPath::parse("session")),
            everywhere
        );
        assert_eq!(tables_with("scopes", &KeyPath::default()), everywhere);
    }
}
