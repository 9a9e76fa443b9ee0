//! Loading of the configuration from file, environment and flags.

use std::{
    fs::File,
    io::{self, Read as _},
    net::SocketAddr,
    path::Path,
};

use figment::{Figment, providers::Serialized, value::Value};

use super::{
    Config, ConfigErrors, Diagnostic, FileError, KeyPath, Places, TomlFile, placeholders, syntax,
    type_errors::{self, TypeErrors},
    variables,
};

/// The maximum size of the file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Values from the command line. They take precedence over the file and the environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// In place of `listen`.
    pub listen: Option<SocketAddr>,
}

/// A configuration and the sources of its values.
pub struct Loaded {
    /// The configuration, with defaults.
    pub config: Config,
    pub(super) sources: Figment,
    /// The line of each key in the file.
    pub places: Places,
}

/// Why a configuration cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// The file cannot be read, or is not TOML.
    File(ConfigErrors),
    /// Values do not have the types of their keys, or keys are unknown or missing.
    Values {
        /// The line of each key in the file.
        places: Box<Places>,
        /// An error for each of them.
        errors: Vec<Diagnostic>,
        /// The configuration with other values in place of the invalid ones.
        repaired: Option<Box<Config>>,
        /// The keys of those values.
        replaced: Vec<KeyPath>,
    },
}

impl Unusable {
    /// The errors with their places.
    #[cfg(test)]
    pub fn located(self) -> ConfigErrors {
        match self {
            Self::File(errors) => errors,
            Self::Values { places, errors, .. } => ConfigErrors(places.locate(errors)),
        }
    }
}

impl Loaded {
    /// Returns whether the file, the environment or a flag sets the key.
    pub fn sets(&self, key: &str) -> bool {
        self.sources.contains(key)
    }
}

/// Reads the configuration.
///
/// # Errors
/// Fails when the file cannot be read, has more than 1 MiB or is not TOML, and when a key is
/// unknown or missing or a value has the wrong type: with an error for each key. Does not check
/// what the values mean.
pub fn load(file: &Path, overrides: Overrides) -> Result<Loaded, Unusable> {
    let text =
        read(file).map_err(|error| Unusable::File(ConfigErrors::without_text(file, error)))?;
    let parsed = TomlFile::parse(file, &text).map_err(|(line, diagnostic)| {
        Unusable::File(ConfigErrors::of_file(file, Some(line), diagnostic))
    })?;
    if let Some(variable) = variables::too_deep() {
        let errors = ConfigErrors::of_variable(variable, syntax::too_deep());
        return Err(Unusable::File(errors));
    }
    let sources = sources(&parsed, overrides);
    // The first line of the error has no part of the file.
    let written: Value = sources.extract().map_err(|error| {
        let text = format!(
            "it cannot be parsed: {}",
            error.kind.to_string().lines().next().unwrap_or_default()
        );
        let key = KeyPath::default();
        Unusable::File(ConfigErrors::of_file(file, None, Diagnostic { key, text }))
    })?;
    let config = written.deserialize();
    let of_lists = variables::of_lists();
    let of_placeholders = placeholders::errors(&written);
    let places = Places::new(file, parsed.lines, written.clone(), sources.clone())
        .with_variables_of_lists(of_lists.clone());
    match config {
        Ok(config) if of_lists.is_empty() && of_placeholders.is_empty() => Ok(Loaded {
            config,
            sources,
            places,
        }),
        _ => {
            let TypeErrors {
                mut errors,
                repaired,
                mut replaced,
            } = type_errors::find(written, &places);
            errors.extend(of_lists.iter().map(variable_of_list));
            replaced.extend(of_lists);
            // The value that replaces the placeholder can have every type.
            errors.retain(|error| !of_placeholders.iter().any(|found| found.key == error.key));
            replaced.extend(of_placeholders.iter().map(|found| found.key.clone()));
            errors.extend(of_placeholders);
            Err(Unusable::Values {
                places: Box::new(places),
                errors,
                repaired: repaired.map(Box::new),
                replaced,
            })
        }
    }
}

/// The error of a variable for a key in a list.
fn variable_of_list(key: &KeyPath) -> Diagnostic {
    Diagnostic {
        key: key.clone(),
        text: format!("{key} is in a list, and can only be set in the file; remove this variable"),
    }
}

fn read(file: &Path) -> Result<String, FileError> {
    if file.is_dir() {
        return Err(FileError::Directory);
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing,
        _ => FileError::Unreadable(error.to_string()),
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(FileError::TooLong(MAX_FILE));
    }
    String::from_utf8(bytes).map_err(|error| {
        let is_utf16 = error.as_bytes().starts_with(&[0xff, 0xfe])
            || error.as_bytes().starts_with(&[0xfe, 0xff]);
        if is_utf16 {
            FileError::Utf16
        } else {
            FileError::NotUtf8
        }
    })
}

fn sources(file: &TomlFile<'_>, overrides: Overrides) -> Figment {
    let mut sources = Figment::from(file).merge(variables::provider());
    if let Some(listen) = overrides.listen {
        sources = sources.merge(Serialized::default("listen", listen));
    }
    sources
}

/// Reads a configuration that this program generated, without environment and flags.
///
/// # Errors
/// Fails when the text is not TOML, a key is unknown or missing, or a value has the wrong type:
/// with the first error.
pub fn from_text(text: &str) -> Result<Config, Diagnostic> {
    let whole = |message: &str| Diagnostic {
        key: KeyPath::default(),
        text: message.to_owned(),
    };
    let parsed = TomlFile::parse(Path::new(""), text).map_err(|(_, diagnostic)| diagnostic)?;
    let written: Value = Figment::from(&parsed)
        .extract()
        .map_err(|error| whole(&error.to_string()))?;
    written.deserialize().map_err(|error| {
        let places = Places::new(Path::new(""), parsed.lines, written.clone(), Figment::new());
        let TypeErrors { errors, .. } = type_errors::find(written, &places);
        errors
            .into_iter()
            .next()
            .unwrap_or_else(|| whole(&error.to_string()))
    })
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use super::*;
    use figment::Jail;

    const MINIMAL: &str = r#"
        base_url = "http://127.0.0.1:3000"
        [[issuer]]
        issuer = "https://auth.example.com"
        [[resource]]
        endpoint = "/mcp"
        upstream = { http = "http://127.0.0.1:8000/mcp" }
    "#;

    fn with_config(
        file: &str,
        test: impl FnOnce(&mut Jail, &dyn Fn() -> Result<Loaded, Unusable>),
    ) {
        Jail::expect_with(|jail| {
            jail.create_file("portcullis.toml", file)?;
            test(jail, &|| {
                load(Path::new("portcullis.toml"), Overrides::default())
            });
            Ok(())
        });
    }

    fn error_of(file: &str) -> String {
        let mut message = String::new();
        with_config(file, |_, load| {
            message = load()
                .err()
                .map(|error| error.located().to_string())
                .unwrap_or_default()
        });
        assert!(!message.contains('\n'), "one line: {message}");
        message
    }

    #[test]
    fn a_minimal_file_has_the_defaults() {
        with_config(MINIMAL, |_, load| {
            let config = load().unwrap().config;
            assert_eq!(config.listen.to_string(), "127.0.0.1:3000");
            assert_eq!(config.issuer[0].algorithms, ["RS256"]);
            assert_eq!(config.limits.max_body, 4 << 20);
        });
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file() {
        with_config(MINIMAL, |jail, load| {
            jail.set_env("PORTCULLIS_LISTEN", "127.0.0.1:4000");
            jail.set_env("PORTCULLIS_SESSION__IDLE_TIMEOUT", "5m");
            let config = load().unwrap().config;
            assert_eq!(config.listen.port(), 4000);
            assert_eq!(config.session.idle_timeout, super::super::Span::secs(300));
            let flags = Overrides {
                listen: Some(([127, 0, 0, 1], 5000).into()),
            };
            let config = super::load(Path::new("portcullis.toml"), flags)
                .unwrap()
                .config;
            assert_eq!(config.listen.port(), 5000);
        });
    }

    #[test]
    fn other_variables_are_ignored() {
        with_config(MINIMAL, |jail, load| {
            for variable in [
                "PORTCULLIS_TOKEN",
                "PORTCULLIS_ADMIN_TOKEN",
                "PORTCULLIS_LOG",
                "PORTCULLIS_VECTORS",
                "PORTCULLIS_CONTAINER",
            ] {
                jail.set_env(variable, "something");
            }
            assert!(load().is_ok());
        });
    }

    /// J9: a Service of Kubernetes that is named as the program does not keep it from starting.
    #[test]
    fn variables_of_services_are_ignored() {
        with_config(MINIMAL, |jail, load| {
            for (variable, value) in [
                ("PORTCULLIS_SERVICE_HOST", "10.0.0.1"),
                ("PORTCULLIS_SERVICE_PORT_HTTP", "3000"),
                ("PORTCULLIS_PORT", "tcp://10.0.0.1:3000"),
                ("PORTCULLIS_PORT_3000_TCP_ADDR", "10.0.0.1"),
            ] {
                jail.set_env(variable, value);
            }
            assert!(load().is_ok());
            jail.set_env("PORTCULLIS_PORT", "3000");
            assert!(load().is_err());
        });
    }

    /// J9: variables of many levels are refused before anything recursive reads them.
    #[test]
    fn deep_variables_are_refused() {
        for (variable, value) in [
            ("PORTCULLIS_TRUSTED_PROXIES".to_owned(), "[".repeat(120_000)),
            ("PORTCULLIS_LIMITS".to_owned(), "{a=".repeat(120_000)),
            (
                format!("PORTCULLIS_{}", ["A"; 30_000].join("__")),
                String::new(),
            ),
        ] {
            with_config(MINIMAL, |jail, load| {
                jail.set_env(&variable, &value);
                let error = load().err().unwrap().located().to_string();
                let (name, problem) = error.split_once(": ").unwrap();
                assert_eq!(name, variable);
                assert!(problem.contains("more than 64 levels deep"), "{problem}");
            });
        }
    }

    /// J9: a variable with the prefix of settings cannot be the source of a secret.
    #[test]
    fn a_secret_in_a_variable_of_settings_is_named() {
        let text = MINIMAL.replace(
            "[[resource]]",
            "client_secret = { env = \"PORTCULLIS_CLIENT_SECRET\" }\n[[resource]]",
        );
        with_config(&text, |jail, load| {
            jail.set_env("PORTCULLIS_CLIENT_SECRET", "hunter2");
            let error = load().err().unwrap().located().to_string();
            assert_eq!(
                error,
                "PORTCULLIS_CLIENT_SECRET: client_secret is not a known key; variables whose names begin with PORTCULLIS_ are \
                 settings; rename the variable, here and in the source of the secret: { env = \"CLIENT_SECRET\" }"
            );
        });
    }

    #[test]
    fn an_unknown_key_is_rejected_with_a_suggestion() {
        let error = error_of(&format!("{MINIMAL}\nrequired_scope = [\"a\"]"));
        assert!(error.contains("resource[0].required_scope"), "{error}");
        assert!(error.contains("did you mean `required_scopes`?"), "{error}");
        assert!(error.contains("portcullis.toml"), "{error}");
        let error = error_of(&format!("lisen = \"127.0.0.1:1\"\n{MINIMAL}"));
        assert!(error.contains("did you mean `listen`?"), "{error}");
        let error = error_of(&MINIMAL.replace("{ http", "{ htp"));
        assert!(error.contains("did you mean `http`?"), "{error}");
    }

    #[test]
    fn a_missing_key_and_a_wrong_type_are_named() {
        let error = error_of("base_url = \"http://127.0.0.1:3000\"");
        assert!(error.contains("resource is missing"), "{error}");
        let error = error_of(&format!("workers = \"many\"\n{MINIMAL}"));
        assert!(error.contains("workers is a string"), "{error}");
    }

    /// J6: a literal secret in the file is rejected and not printed.
    #[test]
    fn a_literal_secret_is_rejected_and_not_printed() {
        let error =
            error_of(&MINIMAL.replace("[[resource]]", "client_secret = \"hunter2\"\n[[resource]]"));
        assert!(error.contains("client_secret"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    /// J2, J6: the error for a value of the wrong type names the type, not the value, which may be
    /// a misplaced secret.
    #[test]
    fn a_value_of_the_wrong_type_is_not_printed() {
        for (more, words) in [
            (
                "[session]\nkeys = \"hunter2\"",
                ["session.keys", "a string", "an array"],
            ),
            (
                "[session]\nkeys = { file = \"hunter2\" }",
                ["session.keys", "a table", "an array"],
            ),
            (
                "[limits]\nmax_body = \"hunter2\"",
                [
                    "limits.max_body",
                    "is a string",
                    "; expected a number of bytes",
                ],
            ),
            (
                "[limits]\nmax_body = -1",
                ["limits.max_body", "must not be negative", "bytes"],
            ),
            (
                "[limits]\nper_address = 5",
                ["limits.per_address", "an integer", "a table"],
            ),
        ] {
            let error = error_of(&format!("{MINIMAL}\n{more}"));
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{more}: {error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    /// J9: a file without an end is not read to its end.
    #[test]
    fn the_size_is_bounded() {
        let limit = MAX_FILE as usize;
        let text = format!("{MINIMAL}\n#");
        with_config(
            &format!("{text}{}", "x".repeat(limit - text.len())),
            |_, load| assert!(load().is_ok()),
        );
        let error = error_of(&format!("{text}{}", "x".repeat(limit - text.len() + 1)));
        assert_eq!(
            error,
            "portcullis.toml: the configuration file has more than 1048576 bytes"
        );
        let endless = load(Path::new("/dev/zero"), Overrides::default())
            .err()
            .unwrap()
            .located()
            .to_string();
        assert!(endless.contains("has more than 1048576 bytes"), "{endless}");
    }

    #[test]
    fn errors_of_the_file_have_one_line() {
        let error = load(Path::new("/nowhere/portcullis.toml"), Overrides::default())
            .err()
            .unwrap()
            .located()
            .to_string();
        assert_eq!(
            error,
            "/nowhere/portcullis.toml: the configuration file does not exist"
        );
        assert!(error_of("base_url = ").starts_with("portcullis.toml:1: base_url: "));
        let error = error_of("client_secret = \"hunter2");
        assert!(
            error.starts_with("portcullis.toml:1: client_secret: ") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
