//! [`meaning`]: names that other programs use, with what to write here.

use crate::{KeyPath, similar::snake_case};

/// What a name of another program means in this configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This key of the same table.
    Key(&'static str),
    /// What to write instead.
    Write(&'static str),
}

/// What is at an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Value,
    Table,
    ArrayOfTables,
}

/// The names, as the head of the file describes them.
const NAMES: &str = include_str!("foreign_names.tsv");

/// The tables at the top of the file that a row is for.
const TOP: &str = "TOP";
const TOP_TABLES: &str = "TOP[]";
const TOP_ARRAYS: &str = "TOP[[]]";
/// Every table, but not the top of the file.
const ANY: &str = "*";

/// Some names of a table, and their meaning.
struct Row {
    tables: &'static str,
    names: &'static str,
    meaning: Meaning,
}

/// Returns the meaning of a name that the table of `key` does not know.
pub(super) fn meaning(key: &KeyPath, written: Written) -> Option<Meaning> {
    let table = key.parent()?.header();
    let name = snake_case(key.names().next_back()?);
    let is_of_table = |of: &str| match of {
        TOP => table.is_empty(),
        TOP_TABLES => table.is_empty() && written != Written::Value,
        TOP_ARRAYS => table.is_empty() && written == Written::ArrayOfTables,
        ANY => !table.is_empty(),
        of => of == table,
    };
    rows()
        .find(|row| {
            row.names.split(' ').any(|other| other == name)
                && row.tables.split(' ').any(is_of_table)
        })
        .map(|row| row.meaning)
}

fn rows() -> impl Iterator<Item = Row> {
    let lines = NAMES.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.split('\t');
        let (tables, names) = (fields.next()?, fields.next()?);
        let meaning = match (fields.next()?, fields.next()) {
            ("", fix) => Meaning::Write(fix?),
            (key, _) => Meaning::Key(key),
        };
        Some(Row {
            tables,
            names,
            meaning,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn path(table: &str) -> KeyPath {
        let is_array = |name| {
            matches!(
                name,
                "resource"
                    | "issuer"
                    | "rule"
                    | "route"
                    | "provider"
                    | "claim"
                    | "claims"
                    | "allow"
                    | "grant"
            )
        };
        let names = table
            .split('.')
            .filter(|name| !name.is_empty() && !name.starts_with(TOP));
        names.fold(KeyPath::default(), |path, name| {
            let path = path.name(name);
            if is_array(name) { path.index(0) } else { path }
        })
    }

    /// J9: a suggested key is one of its table, and a foreign name is none.
    #[test]
    fn suggested_keys_exist() {
        let lines = NAMES.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.clone().count(), rows().count());
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let has_key = fields.get(2).is_some_and(|key| !key.is_empty());
            assert_eq!(fields.len(), if has_key { 3 } else { 4 }, "{line}");
            assert!(!line.ends_with(['.', ' ', '\t']), "{line}");
        }
        for row in rows() {
            for table in row.tables.split(' ').filter(|table| *table != ANY) {
                let known = schema::keys_of(&path(table));
                assert!(!known.is_empty(), "{table}");
                for name in row.names.split(' ') {
                    assert_eq!(name, snake_case(name));
                    assert!(!known.contains(&name), "{table} {name}");
                }
                if let Meaning::Key(key) = row.meaning {
                    assert!(known.contains(&key), "{table} {key}");
                }
            }
        }
    }

    /// J9: every name of a table is in one row.
    #[test]
    fn names_have_one_meaning() {
        let mut found = std::collections::BTreeSet::new();
        for row in rows() {
            for table in row.tables.split(' ') {
                for name in row.names.split(' ') {
                    assert!(found.insert((table, name)), "{table} {name}");
                }
            }
        }
    }

    #[test]
    fn names_are_found_in_their_table() {
        let meaning = |key: &str, written| meaning(&path(key), written);
        let server = Some(Meaning::Key("resource"));
        assert_eq!(meaning("server", Written::ArrayOfTables), server);
        assert_eq!(meaning("server", Written::Table), None);
        assert_eq!(
            meaning("tls.sslCertificate-Key", Written::Value),
            Some(Meaning::Key("key"))
        );
        assert_eq!(meaning("session.ssl_certificate", Written::Value), None);
    }
}
