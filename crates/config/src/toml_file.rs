//! [`TomlFile`]: a TOML file, parsed once for its values and their lines.

use std::path::{Path, PathBuf};

use figment::{
    Error, Metadata, Profile, Provider,
    value::{Dict, Map},
};
use serde::Deserialize as _;
use toml_edit::{ImDocument, de::Deserializer};

use super::{Diagnostic, TomlLines, syntax};

pub(crate) struct TomlFile<'a> {
    document: ImDocument<&'a str>,
    /// The line of each key.
    pub(crate) lines: TomlLines,
    name: PathBuf,
}

impl<'a> TomlFile<'a> {
    /// Parses the text of a file. Its name is only shown. Fails with the line and the error of the
    /// first mistake in the syntax.
    pub(crate) fn parse(name: &Path, text: &'a str) -> Result<Self, (usize, Diagnostic)> {
        syntax::check_depth(text)?;
        let document = ImDocument::parse(text).map_err(|error| syntax::diagnostic(text, &error))?;
        let lines = TomlLines::of(&document, text);
        Ok(Self {
            document,
            lines,
            name: name.to_owned(),
        })
    }
}

impl Provider for TomlFile<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::from("TOML file", self.name.as_path())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let values = Dict::deserialize(Deserializer::from(self.document.clone()));
        Ok(Profile::Default.collect(values.map_err(|error| error.message().to_owned())?))
    }
}
