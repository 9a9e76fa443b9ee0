//! Loading of the configuration from file, environment and flags, with one-line errors.

use std::{net::SocketAddr, path::Path};

use anyhow::{anyhow, bail};
use figment::{
    Figment,
    error::{Actual, Kind},
    providers::{Env, Format, Serialized, Toml},
};

use super::Config;

const PREFIX: &str = "PORTCULLIS_";

/// Variables with the prefix that are not configuration: tokens of clients and administrators, the log filter, and the path of
/// test vectors.
const NOT_CONFIGURATION: &[&str] = &["token", "admin_token", "metrics_token", "log", "vectors"];

/// Values from the command line. They take precedence over the file and the environment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) listen: Option<SocketAddr>,
}

/// A configuration and the sources of its values.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(super) sources: Figment,
}

impl Loaded {
    /// Returns whether the file, the environment or a flag sets the key.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.sources.contains(key)
    }
}

/// Reads the configuration.
///
/// # Errors
/// Fails when the file is missing or not TOML, or a key or value is invalid. The message names the key, its source and,
/// for an unknown key, the most similar known key.
pub(crate) fn load(file: &Path, overrides: Overrides) -> anyhow::Result<Loaded> {
    let sources = sources(file, overrides)?;
    let config = sources.extract().map_err(|error| first_line(error, &sources))?;
    Ok(Loaded { config, sources })
}

/// Reads the configuration as [`load`] does.
///
/// # Errors
/// When it cannot be read. There is a reason for each top-level key, issuer and resource that is not as expected.
pub(crate) fn load_all_reasons(file: &Path, overrides: Overrides) -> Result<Loaded, Vec<anyhow::Error>> {
    load(file, overrides).map_err(|first| match sources(file, overrides) {
        Ok(sources) => super::reasons::all(&sources, first),
        Err(_) => vec![first],
    })
}

fn sources(file: &Path, overrides: Overrides) -> anyhow::Result<Figment> {
    if !file.is_file() {
        bail!(
            "the configuration file {} does not exist; name one with --config, or try `portcullis demo`",
            file.display()
        );
    }
    let mut sources =
        Figment::from(Toml::file_exact(file)).merge(Env::prefixed(PREFIX).ignore(NOT_CONFIGURATION).split("__"));
    if let Some(listen) = overrides.listen {
        sources = sources.merge(Serialized::default("listen", listen));
    }
    Ok(sources)
}

/// Reads a configuration that this program generated.
///
/// # Errors
/// As [`load`].
#[cfg(any(feature = "dev", test))]
pub(crate) fn from_text(text: &str) -> anyhow::Result<Config> {
    let sources = Figment::from(Toml::string(text));
    sources.extract().map_err(|error| first_line(error, &sources))
}

/// The first error, on one line.
pub(super) fn first_line(error: figment::Error, sources: &Figment) -> anyhow::Error {
    let Some(error) = error.into_iter().next() else { return anyhow!("the configuration cannot be read") };
    let source = error.metadata.as_ref().or_else(|| sources.metadata().next()).map(super::origin::describe);
    let source = source.unwrap_or_else(|| "the configuration".to_owned());
    let mut path = error.path.clone();
    match &error.kind {
        Kind::UnknownField(name, known) => {
            if path.last() != Some(name) {
                path.push(name.clone());
            }
            anyhow!("unknown key `{}` in {source}{}", path.join("."), nearest(name, known))
        }
        Kind::UnknownVariant(name, known) => {
            anyhow!("`{}` in {source} has the unknown value {name:?}{}", path.join("."), nearest(name, known))
        }
        Kind::MissingField(name) => {
            path.push(name.to_string());
            anyhow!("`{}` is missing in {source}", path.join("."))
        }
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            let place = if path.is_empty() { source } else { format!("`{}` in {source}", path.join(".")) };
            anyhow!("{place} is {}; expected {}", type_of(found), expected_type(expected))
        }
        kind if path.is_empty() => anyhow!("{source}: {}", without_excerpt(&kind.to_string())),
        kind => anyhow!("`{}` in {source}: {}", path.join("."), without_excerpt(&kind.to_string())),
    }
}

/// The type of a value. The value itself may be a misplaced secret.
fn type_of(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "a boolean",
        Actual::Unsigned(_) | Actual::Signed(_) => "an integer",
        Actual::Float(_) => "a floating-point number",
        Actual::Char(_) | Actual::Str(_) => "a string",
        Actual::Seq => "an array",
        Actual::Map | Actual::Enum => "a table",
        _ => "something else",
    }
}

/// The expected type in the words of TOML.
fn expected_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        expected if expected.starts_with("struct ") || expected == "a map" => "a table",
        expected => expected,
    }
}

/// Suggests the known name that is most similar to the written one.
pub(crate) fn nearest(written: &str, known: &[&str]) -> String {
    let likeness = |name: &&&str| (strsim::jaro_winkler(written, name) * 1000.0) as u32;
    known.iter().max_by_key(likeness).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// A parser's message on one line, without its excerpt of the file, which may contain a secret.
fn without_excerpt(message: &str) -> String {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.contains('|')).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
#[expect(clippy::result_large_err, reason = "figment's jail wants its own error")]
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

    fn with_config(file: &str, test: impl FnOnce(&mut Jail, &dyn Fn() -> anyhow::Result<Loaded>)) {
        Jail::expect_with(|jail| {
            jail.create_file("portcullis.toml", file)?;
            test(jail, &|| load(Path::new("portcullis.toml"), Overrides::default()));
            Ok(())
        });
    }

    fn error_of(file: &str) -> String {
        let mut message = String::new();
        with_config(file, |_, load| message = load().err().map(|error| error.to_string()).unwrap_or_default());
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
            let flags = Overrides { listen: Some(([127, 0, 0, 1], 5000).into()) };
            let config = super::load(Path::new("portcullis.toml"), flags).unwrap().config;
            assert_eq!(config.listen.port(), 5000);
        });
    }

    #[test]
    fn other_variables_are_ignored() {
        with_config(MINIMAL, |jail, load| {
            for variable in ["PORTCULLIS_TOKEN", "PORTCULLIS_ADMIN_TOKEN", "PORTCULLIS_LOG", "PORTCULLIS_VECTORS"] {
                jail.set_env(variable, "something");
            }
            assert!(load().is_ok());
        });
    }

    #[test]
    fn an_unknown_key_is_rejected_with_a_suggestion() {
        let error = error_of(&format!("{MINIMAL}\nrequired_scope = [\"a\"]"));
        assert!(error.contains("resource.0.required_scope"), "{error}");
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
        assert!(error.contains("`resource` is missing"), "{error}");
        let error = error_of(&format!("workers = \"many\"\n{MINIMAL}"));
        assert!(error.contains("`workers`"), "{error}");
    }

    /// J6: a literal secret in the file is rejected and not printed.
    #[test]
    fn a_literal_secret_is_rejected_and_not_printed() {
        let error = error_of(&MINIMAL.replace("[[resource]]", "client_secret = \"hunter2\"\n[[resource]]"));
        assert!(error.contains("client_secret"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    /// J2, J6: the error for a value of the wrong type names the type, not the value, which may be a misplaced secret.
    #[test]
    fn a_value_of_the_wrong_type_is_not_printed() {
        for (more, words) in [
            ("[session]\nkeys = \"hunter2\"", ["`session.keys`", "a string", "an array"]),
            ("[session]\nkeys = { file = \"hunter2\" }", ["`session.keys`", "a table", "an array"]),
            (
                "[limits]\nmax_body = \"hunter2\"",
                ["`limits.max_body`", "is a string", "; expected a non-negative integer"],
            ),
            ("[limits]\nmax_body = -1", ["`limits.max_body`", "an integer", "non-negative"]),
            ("[limits]\nper_address = 5", ["`limits.per_address`", "an integer", "a table"]),
        ] {
            let error = error_of(&format!("{MINIMAL}\n{more}"));
            assert!(words.iter().all(|word| error.contains(word)), "{more}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn errors_of_the_file_have_one_line() {
        let error = load(Path::new("/nowhere/portcullis.toml"), Overrides::default()).err().unwrap().to_string();
        assert!(error.contains("/nowhere/portcullis.toml"), "{error}");
        assert!(error_of("base_url = ").contains("portcullis.toml"));
        let error = error_of("client_secret = \"hunter2");
        assert!(error.contains("line 1") && !error.contains("hunter2"), "{error}");
    }
}
