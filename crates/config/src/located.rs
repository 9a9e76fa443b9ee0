//! [`ConfigErrors`]: the errors of a configuration, each with its file and line, or its environment
//! variable.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use figment::{Figment, value::Value};
use serde::Serialize;

use super::{Diagnostic, FileError, KeyPath, Segment, TomlLines, origin, variables};

/// Where the values of a configuration were read from.
#[derive(Debug)]
pub struct Places {
    file: PathBuf,
    lines: TomlLines,
    /// The values as written, with their sources.
    written: Value,
    sources: Figment,
    /// The keys of variables that no list has.
    of_lists: Vec<KeyPath>,
}

/// A diagnostic with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    /// The file, the environment variable or the flag.
    pub source: String,
    /// The line in the file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The key, such as `issuer[0].algorithms`; empty for the whole configuration.
    pub key: String,
    /// The problem and its fix. Begins with the key.
    pub text: String,
    /// Why there is no text of the file. It is the whole `text`.
    #[serde(skip)]
    pub file_error: Option<FileError>,
}

/// All errors of a configuration, in the order of their lines.
#[derive(Clone, Debug)]
pub struct ConfigErrors(pub Vec<Located>);

impl Places {
    pub(super) fn new(file: &Path, lines: TomlLines, written: Value, sources: Figment) -> Self {
        Self {
            file: file.to_owned(),
            lines,
            written,
            sources,
            of_lists: Vec::new(),
        }
    }

    /// The same places, with variables for keys of lists.
    pub(super) fn with_variables_of_lists(self, of_lists: Vec<KeyPath>) -> Self {
        Self { of_lists, ..self }
    }

    pub(super) fn lines(&self) -> &TomlLines {
        &self.lines
    }

    /// Adds the place of each diagnostic.
    pub fn locate(&self, found: Vec<Diagnostic>) -> Vec<Located> {
        let mut located: Vec<Located> = found
            .into_iter()
            .map(|diagnostic| self.locate_one(diagnostic))
            .collect();
        located.sort_by_key(|located| located.line.unwrap_or(usize::MAX));
        located.dedup();
        located
    }

    fn locate_one(&self, Diagnostic { key, text }: Diagnostic) -> Located {
        let text = self.with_lines(&text);
        let (source, line) = match self.other_source(&key) {
            Some(source) => (source, None),
            None => (self.file.display().to_string(), Some(self.lines.line(&key))),
        };
        Located {
            source,
            line,
            key: key.to_string(),
            text,
            file_error: None,
        }
    }

    /// Adds the line to each entry of a list that a text names after its own key, such as
    /// `issuer[0]`.
    fn with_lines(&self, text: &str) -> String {
        let mut words = text.split(' ');
        let own = words.next().unwrap_or_default().to_owned();
        words.fold(own, |text, word| {
            let entry = word.trim_end_matches([',', ';', '.', ':']);
            let key = KeyPath::parse(entry);
            let is_entry = entry.ends_with(']') && key.to_string() == entry;
            match self.lines.get(&key).filter(|_| is_entry) {
                Some(line) => {
                    let rest = &word[entry.len()..];
                    format!("{text} {entry} (line {line}){rest}")
                }
                None => format!("{text} {word}"),
            }
        })
    }

    /// The environment variable or the flag that sets the key.
    fn other_source(&self, key: &KeyPath) -> Option<String> {
        self.variable(key).or_else(|| {
            let set = of_tables(key);
            let value = self.value(&set)?;
            let names: Vec<&str> = set.names().collect();
            (self.source(value)? == origin::COMMAND_LINE).then(|| format!("--{}", names.join("-")))
        })
    }

    /// The environment variable that sets the key, or would set it beside other keys of its table,
    /// which the file does not have.
    pub(super) fn variable(&self, key: &KeyPath) -> Option<String> {
        if self.of_lists.contains(key) {
            return Some(variables::name(key));
        }
        let key = of_tables(key);
        let is_variable =
            |value: &Value| self.source(value).as_deref() == Some(origin::ENVIRONMENT);
        let is_set = match self.value(&key) {
            // A table can have values from several sources.
            Some(Value::Dict(..)) => false,
            Some(value) => is_variable(value),
            None => {
                let table = key.parent().filter(|table| !table.is_root())?;
                let of_table = self.value(&table).and_then(Value::as_dict)?;
                self.lines.get(&table).is_none() && of_table.values().any(is_variable)
            }
        };
        is_set.then(|| variables::name(&key))
    }

    fn value(&self, key: &KeyPath) -> Option<&Value> {
        key.names()
            .try_fold(&self.written, |value, name| value.as_dict()?.get(name))
    }

    fn source(&self, value: &Value) -> Option<String> {
        self.sources.get_metadata(value.tag()).map(origin::describe)
    }
}

/// The part of a path before the first position in an array. Variables and flags set whole arrays.
fn of_tables(key: &KeyPath) -> KeyPath {
    let names = key.segments().iter().map_while(|segment| match segment {
        Segment::Name(name) => Some(name.as_str()),
        Segment::Index(_) => None,
    });
    names.fold(KeyPath::default(), |path, name| path.name(name))
}

impl ConfigErrors {
    /// An error of the file itself.
    pub(super) fn of_file(file: &Path, line: Option<usize>, diagnostic: Diagnostic) -> Self {
        let Diagnostic { key, text } = diagnostic;
        Self(vec![Located {
            source: file.display().to_string(),
            line,
            key: key.to_string(),
            text,
            file_error: None,
        }])
    }

    /// An error of an environment variable that is not read.
    pub(super) fn of_variable(source: String, text: String) -> Self {
        Self(vec![Located {
            source,
            line: None,
            key: String::new(),
            text,
            file_error: None,
        }])
    }

    /// The error of a file that has no text.
    pub(super) fn without_text(file: &Path, error: FileError) -> Self {
        Self(vec![Located {
            source: file.display().to_string(),
            line: None,
            key: String::new(),
            text: error.to_string(),
            file_error: Some(error),
        }])
    }
}

impl Located {
    /// Returns the source and, if it is a file, the line, such as `portcullis.toml:7`.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.source),
            None => self.source.clone(),
        }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.text)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, located) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{located}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
