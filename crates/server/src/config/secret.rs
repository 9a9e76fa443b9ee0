//! Where a secret comes from. The secret itself never stands in the configuration.

use std::{fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor},
};

const FIX: &str =
    "a secret is not written into the configuration; name its source: { env = \"NAME\" } or { file = \"/path\" }";

/// The source of a secret: `{ env = "NAME" }` or `{ file = "/path" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecretSource {
    /// An environment variable.
    Env(String),
    /// A file; one trailing line end is not part of the secret.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ env = \"NAME\" } or { file = \"/path\" }")
    }

    /// A literal secret: refused, and not repeated in the message.
    fn visit_str<E: de::Error>(self, _: &str) -> Result<SecretSource, E> {
        Err(E::custom(FIX))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SecretSource, A::Error> {
        let source = match members.next_key::<String>()?.as_deref() {
            Some("env") => SecretSource::Env(members.next_value()?),
            Some("file") => SecretSource::File(members.next_value()?),
            _ => return Err(de::Error::custom(FIX)),
        };
        if members.next_key::<String>()?.is_some() {
            return Err(de::Error::custom(FIX));
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

    /// J6: environment and file are the two sources.
    #[test]
    fn environment_and_file_are_sources() {
        assert_eq!(read(r#"{"env":"NAME"}"#), Ok(SecretSource::Env("NAME".to_owned())));
        assert_eq!(read(r#"{"file":"/run/secret"}"#), Ok(SecretSource::File("/run/secret".into())));
    }

    /// J6: a literal secret is refused, and the message does not repeat it.
    #[test]
    fn a_literal_is_refused_unseen() {
        let error = read(r#""hunter2""#).unwrap_err();
        assert!(error.contains("{ env = \"NAME\" }"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn two_sources_or_another_one_are_refused() {
        assert!(read(r#"{"env":"A","file":"/b"}"#).is_err());
        assert!(read(r#"{"value":"hunter2"}"#).is_err_and(|error| !error.contains("hunter2")));
    }
}
