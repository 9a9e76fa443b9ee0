use std::{
    borrow::Cow,
    env, fmt,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use portcullis_metadata::Secret;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor},
};
use zeroize::Zeroizing;

const FIX: &str = "a secret is not written into the configuration; name its source: { env = \"NAME\" } or { file = \"/path\" }";

/// The maximum size of a file of secrets, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The source of a secret: `{ env = "NAME" }` or `{ file = "/path" }`. `Debug` prints no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// An environment variable; one trailing line end is not part of the secret.
    Env(String),
    /// A file; one trailing line end is not part of the secret.
    File(PathBuf),
    /// A secret of the program that makes the configuration. It cannot be configured.
    #[serde(skip)]
    Given(Secret),
}

impl SecretSource {
    /// Returns the file, if the secret is in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Env(_) | Self::Given(_) => None,
        }
    }

    /// Reads the secret.
    ///
    /// # Errors
    /// Fails when the variable is not set, the file cannot be read or has more than 64 KiB, or the
    /// content is empty or not UTF-8. The message names the source and contains no part of its
    /// content.
    pub fn read(&self) -> Result<Secret, SecretError> {
        let text = match self {
            // The error of a variable that is not UTF-8 contains its value.
            Self::Env(name) => env::var(name)
                .map(Zeroizing::new)
                .map_err(|error| match error {
                    env::VarError::NotPresent => without_value(name),
                    env::VarError::NotUnicode(_) => SecretError::VariableEncoding(name.clone()),
                })?,
            Self::File(path) => read_text(path)?,
            Self::Given(secret) => return Ok(secret.clone()),
        };
        let secret = text
            .strip_suffix('\n')
            .map_or(&**text, |text| text.strip_suffix('\r').unwrap_or(text));
        if secret.is_empty() {
            return Err(SecretError::Empty(self.clone()));
        }
        Ok(Secret::new(secret))
    }
}

/// Why a secret cannot be read. The texts contain no part of the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The name of the variable is written as in a shell: `$NAME`, `${NAME}` or `%NAME%`.
    #[error("{name:?} is not the name of a variable; write {meant:?}")]
    Variable {
        /// The name as configured.
        name: String,
        /// The name alone.
        meant: String,
    },
    /// There is no such variable, and its name is not a usual one. It may be the secret itself.
    #[error(
        "env is the name of an environment variable, not the secret, and there is no variable with the configured name; set \
         one for this process, and write its name: {{ env = \"CLIENT_SECRET\" }}"
    )]
    NotAName,
    /// This process has no such variable.
    #[error("the environment variable {0} is not set; set it for this process")]
    NotSet(String),
    /// The value of the variable is not UTF-8.
    #[error("the environment variable {0} is not UTF-8; set it to text")]
    VariableEncoding(String),
    /// There is no such file, and the path is not an absolute one. It may be the secret itself.
    #[error(
        "there is no file with this path in the working directory, and it is not repeated, because it may be the secret itself; \
         save the secret to a file, and name that by its absolute path, such as \"/run/secrets/client-secret\""
    )]
    NotAPath,
    /// The file cannot be read.
    #[error("the file {} cannot be read: {error}; name a file that this user can read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause, which the text contains.
        error: io::Error,
    },
    /// The file has more than 64 KiB.
    #[error("the file {} has more than {MAX_FILE} bytes; name a file that contains only the secret", .0.display())]
    TooLarge(PathBuf),
    /// The file is not UTF-8.
    #[error("the file {} is not UTF-8; save it as UTF-8", .0.display())]
    FileEncoding(PathBuf),
    /// The secret has no character.
    #[error("{0} is empty; write the secret there")]
    Empty(SecretSource),
}

/// Returns the error of a variable that is not set.
fn without_value(name: &str) -> SecretError {
    let is_name = |name: &&str| {
        let is_letter =
            |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        name.bytes().all(is_letter) && name.starts_with(|c: char| !c.is_ascii_digit())
    };
    let within = |start, end| name.strip_prefix(start)?.strip_suffix(end);
    let meant = within("${", "}")
        .or_else(|| within("$(", ")"))
        .or_else(|| within("%", "%"))
        .or_else(|| within("$", ""));
    match meant.filter(is_name) {
        Some(meant) => SecretError::Variable {
            name: name.to_owned(),
            meant: meant.to_owned(),
        },
        None if is_name(&name) => SecretError::NotSet(name.to_owned()),
        None => SecretError::NotAName,
    }
}

/// Reads a file of secrets.
fn read_text(path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let bytes = read_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename if may_be_secret(path) => {
            SecretError::NotAPath
        }
        _ => SecretError::File {
            path: path.to_owned(),
            error,
        },
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(SecretError::TooLarge(path.to_owned()));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| SecretError::FileEncoding(path.to_owned()))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Whether a path is not certainly meant as one.
pub(crate) fn may_be_secret(path: &Path) -> bool {
    path.is_relative()
        && !path.starts_with(".")
        && !path.starts_with("..")
        && !path.starts_with("~")
}

/// Reads a file up to the first byte after the maximum size.
fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    // Of the maximum size, because a buffer that grows leaves copies of the secret in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE as usize + 1));
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Given(_) => f.write_str("the secret of this program"),
        }
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

impl JsonSchema for SecretSource {
    fn schema_name() -> Cow<'static, str> {
        "SecretSource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The source of a secret: an environment variable or a file.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": { "env": { "type": "string", "description": "The environment variable." } },
                    "required": ["env"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": { "file": { "type": "string", "description": "The file." } },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
            "examples": [{ "env": "CLIENT_SECRET" }, { "file": "/run/secrets/client-secret" }],
        })
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ env = \"NAME\" } or { file = \"/path\" }")
    }

    /// Rejects a literal secret. The message does not contain it.
    fn visit_str<E: de::Error>(self, _: &str) -> Result<SecretSource, E> {
        Err(E::custom(FIX))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SecretSource, A::Error> {
        let source = match members.next_key::<String>()?.as_deref() {
            Some("env") => SecretSource::Env(members.next_value()?),
            Some("file") => SecretSource::File(members.next_value()?),
            _ => return Err(de::Error::custom(FIX)),
        };
        if let Some(other) = members.next_key::<String>()? {
            let is_source = matches!(other.as_str(), "env" | "file");
            return Err(de::Error::custom(if is_source {
                "`env` and `file` are both set; remove one"
            } else {
                FIX
            }));
        }
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<SecretSource, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// J6: a source is an environment variable or a file.
    #[test]
    fn environment_and_file_are_sources() {
        assert_eq!(
            read(r#"{"env":"NAME"}"#),
            Ok(SecretSource::Env("NAME".to_owned()))
        );
        assert_eq!(
            read(r#"{"file":"/run/secret"}"#),
            Ok(SecretSource::File("/run/secret".into()))
        );
    }

    /// J6: a literal secret is rejected, and the message does not contain it.
    #[test]
    fn a_literal_is_rejected_and_not_printed() {
        let error = read(r#""hunter2""#).unwrap_err();
        assert!(error.contains("{ env = \"NAME\" }"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    /// D1, J6: a secret is read from its source, without one trailing line end.
    #[test]
    #[expect(
        clippy::result_large_err,
        reason = "figment's jail wants its own error"
    )]
    fn a_secret_is_read_without_its_line_end() {
        figment::Jail::expect_with(|jail| {
            for (text, secret) in [
                ("hunter2", "hunter2"),
                ("hunter2\n", "hunter2"),
                ("hunter2\r\n", "hunter2"),
                (" a \n\n", " a \n"),
            ] {
                jail.create_file("secret", text)?;
                jail.set_env("A_SECRET", text);
                for source in [
                    SecretSource::File("secret".into()),
                    SecretSource::Env("A_SECRET".to_owned()),
                ] {
                    assert_eq!(source.read().unwrap().secret(), secret, "{text:?}");
                }
            }
            Ok(())
        });
    }

    /// J6: the error names a source without a secret in one line and contains no part of its
    /// content.
    #[test]
    #[expect(
        clippy::result_large_err,
        reason = "figment's jail wants its own error"
    )]
    fn a_source_without_a_secret_is_named() {
        figment::Jail::expect_with(|jail| {
            jail.create_file("empty", "\n")?;
            jail.create_file("large", &"s".repeat(64 << 10))?;
            assert_eq!(
                SecretSource::File("large".into())
                    .read()
                    .unwrap()
                    .secret()
                    .len(),
                64 << 10
            );
            jail.create_file("large", &"s".repeat((64 << 10) + 1))?;
            std::fs::write("binary", b"hunter2\xff").unwrap();
            jail.set_env("AN_EMPTY_SECRET", "");
            for (source, named) in [
                (
                    SecretSource::Env("NO_SUCH_SECRET".to_owned()),
                    "the environment variable NO_SUCH_SECRET is not set",
                ),
                (
                    SecretSource::Env("AN_EMPTY_SECRET".to_owned()),
                    "the environment variable AN_EMPTY_SECRET is empty",
                ),
                (
                    SecretSource::File("/nowhere/secret".into()),
                    "the file /nowhere/secret cannot be read: No such file",
                ),
                (
                    SecretSource::File("empty".into()),
                    "the file empty is empty",
                ),
                (
                    SecretSource::File("large".into()),
                    "the file large has more than 65536 bytes; name a file",
                ),
                (
                    SecretSource::File("/dev/zero".into()),
                    "the file /dev/zero has more than 65536 bytes",
                ),
                (
                    SecretSource::File("binary".into()),
                    "the file binary is not UTF-8",
                ),
            ] {
                let message = format!("{:#}", source.read().unwrap_err());
                assert!(message.starts_with(named), "{message}");
                assert!(!message.contains('\n'), "{message}");
                assert!(!message.contains("hunter2"), "{message}");
                assert!(!message.contains("sss"), "{message}");
            }
            Ok(())
        });
    }

    /// J6: a name as in a shell is written alone. What may be the secret is not printed.
    #[test]
    fn names_of_variables_are_recognized() {
        for written in ["$NO_SUCH", "${NO_SUCH}", "$(NO_SUCH)", "%NO_SUCH%"] {
            let error = SecretSource::Env(written.to_owned()).read().unwrap_err();
            assert!(error.to_string().ends_with("write \"NO_SUCH\""), "{error}");
        }
        for secret in [
            "hunter2",
            "s3cr3t-Value/of+prod==",
            "$hunter2",
            "7HUNTER",
            "",
        ] {
            let error = SecretSource::Env(secret.to_owned()).read().unwrap_err();
            assert!(matches!(error, SecretError::NotAName), "{error}");
            assert!(
                secret.is_empty() || !error.to_string().contains(secret),
                "{error}"
            );
        }
    }

    #[test]
    fn two_sources_and_unknown_sources_are_rejected() {
        assert!(read(r#"{"env":"A","file":"/b"}"#).is_err());
        assert!(read(r#"{"value":"hunter2"}"#).is_err_and(|error| !error.contains("hunter2")));
    }
}
