//! [`KeyFix`]: how to fix a key that is not known.

use figment::value::Value;

use super::{
    foreign_names::{Meaning, Written, meaning},
    lookup::{get, last_name},
    other_tables,
    restriction::{is_of_other_subject, restriction, restriction_of_sign_in},
};
use crate::{KeyPath, Places, schema, similar::intended_key, variables};

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
    /// As [`Self::Rename`], for a string in place of an array.
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
        let unknown = UnknownKey {
            key,
            table: key.parent().unwrap_or_default(),
            name,
            known,
            value: get(root, key),
            root,
            places,
        };
        unknown.fix()
    }

    /// Whether the text names the missing key `name` of the same table.
    pub(super) fn names(&self, name: &str) -> bool {
        matches!(self, Self::Write(fix) if fix.contains(&format!("{name} = ")))
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
                "{key} is not a known key; did you mean `{name}`? {}",
                form_of_array(&key.parent().unwrap_or_default().name(name))
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

/// A key that its table does not know.
struct UnknownKey<'a> {
    key: &'a KeyPath,
    table: KeyPath,
    name: &'a str,
    known: &'static [&'static str],
    value: Option<&'a Value>,
    root: &'a Value,
    places: &'a Places,
}

impl UnknownKey<'_> {
    fn fix(&self) -> KeyFix {
        self.of_variable_or_secret()
            .or_else(|| self.foreign())
            .or_else(|| self.of_top_of_file())
            .or_else(|| self.intended().map(|known| self.rename(known)))
            .or_else(|| self.of_other_table())
            .or_else(|| restriction(self.key, self.root).map(KeyFix::Write))
            .or_else(|| self.holds_top_level_keys().then_some(KeyFix::RemoveHeader))
            .or_else(|| self.holds_foreign_keys())
            .unwrap_or(KeyFix::Remove(self.known))
    }

    fn of_variable_or_secret(&self) -> Option<KeyFix> {
        let of_variable = || {
            self.places.variable(self.key)?;
            variables::of_secret(self.key, self.root)
                .or_else(|| variables::meant(&self.table, self.name))
        };
        of_variable()
            .or_else(|| secret_source(&self.table, self.name, self.known))
            .map(KeyFix::Write)
    }

    fn foreign(&self) -> Option<KeyFix> {
        Some(match meaning(self.key, self.written())? {
            Meaning::Key(known) => self.rename(known),
            Meaning::Write(fix) => {
                let of_sign_in = fix
                    .starts_with("write [[resource.claim]]")
                    .then(|| restriction_of_sign_in(self.key, self.root));
                KeyFix::Write(of_sign_in.flatten().unwrap_or_else(|| fix.to_owned()))
            }
        })
    }

    /// The fix for the name of a key or a table at the top of the file.
    fn of_top_of_file(&self) -> Option<KeyFix> {
        let top_level = schema::keys_of(&KeyPath::default());
        if self.table.is_root() || !top_level.contains(&self.name) {
            return None;
        }
        let lines = self.places.lines();
        let Some(header) = top_level_table(self.name) else {
            let first = lines.first_table();
            let first = first.map(|(line, header)| (line, header.to_owned()));
            return Some(KeyFix::MoveAbove(first));
        };
        let is_table = self.written() != Written::Value;
        let has_keys = is_table || self.value.is_some_and(|value| value.as_dict().is_some());
        let can_have_keys = |known: &&str| !schema::keys_of(&self.table.name(known)).is_empty();
        let intended = self.intended();
        Some(
            match intended.filter(|known| !has_keys || can_have_keys(known)) {
                Some(known) => self.rename(known),
                None => KeyFix::TopLevelTable(header, is_table),
            },
        )
    }

    fn of_other_table(&self) -> Option<KeyFix> {
        let headers = other_tables::headers_for(self.name, &self.table);
        if self.written() != Written::Value && !headers.is_empty() {
            return Some(KeyFix::WriteHeader(headers));
        }
        let tables = other_tables::with_key(self.name, &self.table);
        (!tables.is_empty()).then_some(KeyFix::MoveTo(tables))
    }

    /// Whether this is a table at the top of the file that contains keys that belong above all
    /// tables.
    fn holds_top_level_keys(&self) -> bool {
        let top_level = schema::keys_of(&KeyPath::default());
        let is_at_top = self.table.is_root() && self.places.lines().is_table(self.key);
        is_at_top && self.members().any(|name| top_level.contains(&name))
    }

    /// The fix for an unknown table at the top of the file whose keys are foreign names of keys
    /// that belong there, such as `[server]` with `port`.
    fn holds_foreign_keys(&self) -> Option<KeyFix> {
        let mut members = self.members().filter(|_| self.table.is_root());
        members.find_map(
            |name| match meaning(&self.table.name(name), Written::Value)? {
                Meaning::Write(fix) => Some(KeyFix::Write(fix.to_owned())),
                Meaning::Key(_) => None,
            },
        )
    }

    fn members(&self) -> impl Iterator<Item = &str> {
        let members = self.value.and_then(Value::as_dict);
        members
            .into_iter()
            .flat_map(|members| members.keys().map(String::as_str))
    }

    fn written(&self) -> Written {
        let lines = self.places.lines();
        if lines.is_array_of_tables(self.key) {
            Written::ArrayOfTables
        } else if lines.is_table(self.key) {
            Written::Table
        } else {
            Written::Value
        }
    }

    /// The key of the same table of which this one is a misspelling.
    fn intended(&self) -> Option<&'static str> {
        intended_key(self.name, self.known).filter(|known| !is_of_other_subject(self.name, known))
    }

    fn rename(&self, known: &'static str) -> KeyFix {
        let is_string = self.value.is_some_and(|value| value.as_str().is_some());
        match schema::type_name(&self.table.name(known)) {
            Some("array") if is_string => KeyFix::RenameToArray(known),
            _ => KeyFix::Rename(known),
        }
    }
}

/// Returns how an array is written that has another value.
fn form_of_array(key: &KeyPath) -> String {
    if schema::is_secret(&key.index(0)) || schema::keys_of(&key.index(0)).is_empty() {
        format!("It is an array: {} = [\"…\"]", last_name(key))
    } else {
        format!("It is an array of tables: [[{}]]", key.header())
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
