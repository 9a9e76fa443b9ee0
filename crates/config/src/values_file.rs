//! Parsing of TOML files other than the configuration.

use std::path::Path;

use figment::{
    Error, Figment,
    error::{Actual, Kind},
};
use serde::de::DeserializeOwned;

use super::{
    ConfigErrors, Diagnostic, KeyPath, TomlFile, TomlLines, nearest,
    type_names::{expected_type, type_of},
};

/// Parses the values of a TOML file. `file` is only named in errors.
///
/// # Errors
/// Fails when the text is not TOML, a value does not have the type of its key, or a key is unknown
/// or missing. Returns the first of these errors. It names the file, the line, the key and the
/// expected type, and never the value, which may be a misplaced secret. A message of `T` itself is
/// returned as it is.
pub fn parse_values<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, ConfigErrors> {
    let parsed = TomlFile::parse(file, text)
        .map_err(|(line, diagnostic)| ConfigErrors::of_file(file, Some(line), diagnostic))?;
    Figment::from(&parsed).extract().map_err(|error| {
        let diagnostic = diagnostic(&error, &parsed.lines);
        ConfigErrors::of_file(file, Some(parsed.lines.line(&diagnostic.key)), diagnostic)
    })
}

fn diagnostic(error: &Error, lines: &TomlLines) -> Diagnostic {
    let path = KeyPath::from_names(error.path.iter().map(String::as_str));
    match &error.kind {
        Kind::UnknownField(name, known) => {
            let key = in_table(path, name);
            let text = format!("{key} is not a known key{}", nearest(name, known));
            Diagnostic { text, key }
        }
        Kind::MissingField(name) => {
            let key = in_table(path, name);
            Diagnostic {
                text: format!("{key} is missing; add it"),
                key,
            }
        }
        Kind::UnknownVariant(_, known) => Diagnostic {
            text: format!(
                "{path} has an unknown value; write one of {}",
                known.join(", ")
            ),
            key: path,
        },
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            let is_single_table =
                matches!(found, Actual::Map) && expected == "a sequence" && lines.is_table(&path);
            let name = path.header();
            let fix = if is_single_table {
                format!("; write [[{name}]] instead of [{name}]")
            } else {
                String::new()
            };
            let text = format!(
                "{path} is {}; expected {}{fix}",
                type_of(found),
                expected_type(expected)
            );
            Diagnostic { text, key: path }
        }
        Kind::Message(message) => Diagnostic::new(&path, message),
        // The texts of the other errors can contain the value.
        _ => Diagnostic {
            text: format!("{path} has an invalid value; see the documentation"),
            key: path,
        },
    }
}

/// Returns the path of a key in a table. Some errors have the path of the table, and some that of
/// the key.
fn in_table(path: KeyPath, name: &str) -> KeyPath {
    if path.names().next_back() == Some(name) {
        path
    } else {
        path.name(name)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are compared")]
    struct Values {
        entry: Vec<Entry>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are compared")]
    struct Entry {
        name: String,
        size: Option<usize>,
        color: Option<Color>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
        Blue,
    }

    /// J2, J6: an error names line, key and expected type, and never the value.
    #[test]
    fn errors_name_line_key_and_expected_type() {
        for (text, expected) in [
            (
                "[[entry]]\nname = 5",
                "2: entry[0].name is an integer; expected a string",
            ),
            (
                "[[entry]]\nname = 'a'\nsize = 'hunter2'",
                "3: entry[0].size is a string; expected a non-negative integer",
            ),
            (
                "[[entry]]\nname = 'a'\n\nsize = -1",
                "4: entry[0].size is an integer; expected a non-negative integer",
            ),
            (
                "[[entry]]\nname = 'a'\ncolor = 'hunter2'",
                "3: entry[0].color has an unknown value; write one of red, blue",
            ),
            (
                "[[entry]]\nnane = 'hunter2'",
                "2: entry[0].nane is not a known key; did you mean `name`?",
            ),
            ("[[entry]]\nsize = 1", "1: entry[0].name is missing; add it"),
            (
                "entry = ['hunter2']",
                "1: entry[0] is a string; expected a table",
            ),
            (
                "[entry]\nname = 'hunter2'",
                "1: entry is a table; expected an array; write [[entry]] instead of [entry]",
            ),
            (
                "[[entry]]\nname = hunter2",
                "2: entry[0].name: invalid string expected `\"`, `'`; put the value in double quotes, if it is a text, an address or a duration",
            ),
        ] {
            let errors = parse_values::<Values>(Path::new("a.toml"), text).unwrap_err();
            assert_eq!(errors.to_string(), format!("a.toml:{expected}"), "{text}");
        }
        assert!(
            parse_values::<Values>(Path::new("a.toml"), "[[entry]]\nname = 'a'\ncolor = 'red'")
                .is_ok()
        );
    }
}
