//! The effective configuration with the source of every value, for `portcullis check`.

use figment::{Figment, Metadata, Source, value::Value};
use serde::Serialize;

use super::Loaded;

/// One value that the server uses.
#[derive(Debug, Serialize)]
pub struct Effective {
    /// The key's path, such as `resource.0.endpoint`.
    pub key: String,
    /// The value as JSON. Of a secret, only the source is shown.
    pub value: serde_json::Value,
    /// The file, the environment variable, the flag, or `default`.
    pub origin: String,
}

/// Why the values cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EffectiveError {
    /// The sources cannot be combined again.
    #[error(transparent)]
    Sources(#[from] Box<figment::Error>),
    /// A value has no form in JSON.
    #[error(transparent)]
    Value(#[from] serde_json::Error),
}

/// Returns every value of the configuration, in the order of the keys.
///
/// # Errors
/// Fails when the configuration cannot be serialized.
pub fn effective(loaded: &Loaded) -> Result<Vec<Effective>, EffectiveError> {
    let written: Value = loaded.sources.extract().map_err(Box::new)?;
    let mut rows = Vec::new();
    walk(
        &serde_json::to_value(&loaded.config)?,
        Some(&written),
        &loaded.sources,
        String::new(),
        &mut rows,
    );
    Ok(rows)
}

/// Walks both trees together: the typed one has every value, and the written one has the sources.
fn walk(
    value: &serde_json::Value,
    written: Option<&Value>,
    sources: &Figment,
    key: String,
    rows: &mut Vec<Effective>,
) {
    let below = |name: &str| {
        if key.is_empty() {
            name.to_owned()
        } else {
            format!("{key}.{name}")
        }
    };
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                let written = written
                    .and_then(Value::as_dict)
                    .and_then(|dict| dict.get(name));
                walk(member, written, sources, below(name), rows);
            }
        }
        serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
            for (position, item) in items.iter().enumerate() {
                let written = written
                    .and_then(Value::as_array)
                    .and_then(|array| array.get(position));
                walk(item, written, sources, below(&position.to_string()), rows);
            }
        }
        leaf => {
            let origin = written
                .and_then(|written| sources.get_metadata(written.tag()))
                .map(describe);
            rows.push(Effective {
                key,
                value: leaf.clone(),
                origin: origin.unwrap_or_else(|| "default".to_owned()),
            });
        }
    }
}

/// The sources that are not a file.
pub(super) const ENVIRONMENT: &str = "the environment";
pub(super) const COMMAND_LINE: &str = "the command line";

/// Returns the name of a source for people.
pub(super) fn describe(metadata: &Metadata) -> String {
    match &metadata.source {
        Some(Source::File(path)) => path.display().to_string(),
        _ if metadata.name.contains("environment") => ENVIRONMENT.to_owned(),
        _ => COMMAND_LINE.to_owned(),
    }
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use std::path::Path;

    use figment::Jail;

    use super::*;
    use crate::{Overrides, load};

    #[test]
    fn every_value_has_its_origin() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "portcullis.toml",
                r#"
                base_url = "http://127.0.0.1:3000"
                [[resource]]
                endpoint = "/mcp"
                upstream = "demo"
                "#,
            )?;
            jail.set_env("PORTCULLIS_WORKERS", "3");
            let loaded = load(
                Path::new("portcullis.toml"),
                Overrides {
                    listen: Some(([127, 0, 0, 1], 5000).into()),
                },
            )
            .unwrap();
            let rows = effective(&loaded).unwrap();
            let origin = |key: &str| &rows.iter().find(|row| row.key == key).unwrap().origin;
            assert!(origin("base_url").ends_with("portcullis.toml"));
            assert!(origin("resource.0.endpoint").ends_with("portcullis.toml"));
            assert_eq!(origin("workers"), "the environment");
            assert_eq!(origin("listen"), "the command line");
            assert_eq!(origin("session.idle_timeout"), "default");
            assert_eq!(origin("resource.0.realm"), "default");
            Ok(())
        });
    }
}
