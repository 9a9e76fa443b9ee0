//! [`ConfigErrors`]: the errors of a configuration, each with its file and line, or its environment variable.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use figment::{Figment, value::Value};
use serde::Serialize;

use super::{Diagnostic, FileError, KeyPath, Segment, TomlLines, load::PREFIX, origin};

/// Where the values of a configuration were read from.
#[derive(Debug)]
pub struct Places {
    file: PathBuf,
    lines: TomlLines,
    /// The values as written, with their sources.
    written: Value,
    sources: Figment,
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
        }
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

    /// The environment variable or the flag that sets the key.
    fn other_source(&self, key: &KeyPath) -> Option<String> {
        let names = key.segments().iter().map_while(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        });
        let names: Vec<&str> = names.collect();
        let value = names
            .iter()
            .try_fold(&self.written, |value, name| value.as_dict()?.get(*name))?;
        // A table can have values from several sources.
        if value.as_dict().is_some() {
            return None;
        }
        let metadata = self.sources.get_metadata(value.tag())?;
        match origin::describe(metadata).as_str() {
            origin::ENVIRONMENT => {
                Some(format!("{PREFIX}{}", names.join("__").to_ascii_uppercase()))
            }
            origin::COMMAND_LINE => Some(format!("--{}", names.join("-"))),
            _ => None,
        }
    }
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

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
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
