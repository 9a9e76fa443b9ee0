//! [`TomlLines`]: the line of each key of a TOML file.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::{ImDocument, Item, TableLike, Value};

use super::KeyPath;

/// The line of each key, counted from 1.
#[derive(Debug, Default)]
pub(crate) struct TomlLines {
    lines: BTreeMap<KeyPath, usize>,
    /// Tables with a header in single brackets.
    tables: BTreeSet<KeyPath>,
    /// Tables without a header, whose keys have the name of the table before a dot.
    dotted_tables: BTreeSet<KeyPath>,
    /// Arrays of tables, with headers in double brackets.
    arrays_of_tables: BTreeSet<KeyPath>,
    first_table: Option<(usize, String)>,
}

impl TomlLines {
    pub(crate) fn of(document: &ImDocument<&str>, text: &str) -> Self {
        let line_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut walk = Walk {
            line_ends: line_ends.map(|(position, _)| position).collect(),
            found: Self::default(),
        };
        walk.table(document.as_table(), &KeyPath::default());
        let mut found = walk.found;
        let is_header = |line: &&str| line.trim_start().starts_with('[');
        // A line of a multi-line array or string can begin with a bracket, too.
        let headers: BTreeSet<usize> = found
            .tables
            .iter()
            .chain(&found.arrays_of_tables)
            .filter_map(|key| found.lines.get(key).copied())
            .collect();
        found.first_table = headers.first().and_then(|line| {
            let header = text.lines().nth(line.checked_sub(1)?).filter(is_header)?;
            Some((*line, header.trim().to_owned()))
        });
        found
    }

    /// The line of a key, or of the nearest table that the file has. The whole file begins in line
    /// 1.
    pub(crate) fn line(&self, key: &KeyPath) -> usize {
        match self.lines.get(key) {
            Some(line) => *line,
            None => key.parent().map_or(1, |parent| self.line(&parent)),
        }
    }

    /// The line of a key, if the file has it.
    pub(crate) fn get(&self, key: &KeyPath) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// Whether the table has a header in single brackets.
    pub(crate) fn is_table(&self, key: &KeyPath) -> bool {
        self.tables.contains(key)
    }

    /// Whether the table has no header, and its name before each of its keys.
    pub(crate) fn is_dotted_table(&self, key: &KeyPath) -> bool {
        self.dotted_tables.contains(key)
    }

    /// Whether the tables have headers in double brackets.
    pub(crate) fn is_array_of_tables(&self, key: &KeyPath) -> bool {
        self.arrays_of_tables.contains(key)
    }

    pub(crate) fn first_table(&self) -> Option<(usize, &str)> {
        self.first_table
            .as_ref()
            .map(|(line, header)| (*line, header.as_str()))
    }
}

/// Returns the line of a position, counted from 1.
pub(super) fn line_at(text: &str, position: usize) -> usize {
    let before = text.as_bytes().get(..position).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

struct Walk {
    /// The positions of all line ends.
    line_ends: Vec<usize>,
    found: TomlLines,
}

impl Walk {
    fn table(&mut self, table: &dyn TableLike, path: &KeyPath) {
        for (name, item) in table.iter() {
            let key = path.name(name);
            let span = table
                .key(name)
                .and_then(toml_edit::Key::span)
                .or_else(|| item.span());
            self.add(&key, span);
            self.item(item, &key);
        }
    }

    fn item(&mut self, item: &Item, key: &KeyPath) {
        match item {
            Item::Table(table) => {
                if table.is_dotted() {
                    self.found.dotted_tables.insert(key.clone());
                } else if !table.is_implicit() {
                    self.found.tables.insert(key.clone());
                }
                self.table(table, key);
            }
            Item::ArrayOfTables(tables) => {
                self.found.arrays_of_tables.insert(key.clone());
                for (position, table) in tables.iter().enumerate() {
                    let key = key.index(position);
                    self.add(&key, table.span());
                    self.table(table, &key);
                }
            }
            Item::Value(value) => self.value(value, key),
            Item::None => {}
        }
    }

    fn value(&mut self, value: &Value, key: &KeyPath) {
        match value {
            Value::InlineTable(table) => self.table(table, key),
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    let key = key.index(position);
                    self.add(&key, item.span());
                    self.value(item, &key);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, key: &KeyPath, span: Option<std::ops::Range<usize>>) {
        if let Some(span) = span {
            let ends = self.line_ends.partition_point(|end| *end < span.start);
            self.found.lines.insert(key.clone(), 1 + ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nlisten = \"a\"\nlist = [\n  [1],\n  2,\n]\n\n[session]\nkeys = [\n  { env = \"A\" },\n]\n\
                        [[issuer]]\njwks = { cooldown = 1 }\n[[issuer]]\njwks.cooldown = 2\n[[issuer.rule]]\nname = 1\n";

    /// J9: every key has its line, in tables, arrays of tables, inline tables, and with dots.
    #[test]
    fn every_key_has_its_line() {
        for text in [
            TEXT.to_owned(),
            format!("\u{feff}{TEXT}"),
            TEXT.replace('\n', "\r\n"),
        ] {
            let lines = TomlLines::of(&ImDocument::parse(text.as_str()).unwrap(), &text);
            for (key, line) in [
                ("listen", 2),
                ("list", 3),
                ("list[0]", 4),
                ("list[1]", 5),
                ("session", 8),
                ("session.keys[0].env", 10),
                ("issuer[0]", 12),
                ("issuer[0].jwks.cooldown", 13),
                ("issuer[1].jwks.cooldown", 15),
                ("issuer[1].rule[0].name", 17),
                // Absent keys are where their table is.
                ("issuer[1].rule[0].absent", 16),
                ("session.absent", 8),
                ("absent", 1),
            ] {
                assert_eq!(lines.line(&KeyPath::parse(key)), line, "{key}");
            }
            assert!(lines.is_table(&KeyPath::parse("session")));
            assert!(!lines.is_table(&KeyPath::parse("issuer")));
            assert!(lines.is_array_of_tables(&KeyPath::parse("issuer[1].rule")));
            assert_eq!(lines.first_table(), Some((8, "[session]")));
        }
    }
}
