//! The effective configuration with the source of every value, for `portcullis check`.

use figment::{Figment, Metadata, Source, value::Value};
use portcullis_broker::Lifetimes;
use portcullis_identity_provider::ProviderKind;
use serde::Serialize;
use serde_json::Value as Json;
use url::Url;

use super::{Config, KeyPath, Loaded, Segment, Span, changes::without_secrets, schema};

/// One value that the server uses.
#[derive(Debug, Serialize)]
pub struct Effective {
    /// The key's path, such as `resource.0.endpoint`.
    pub key: String,
    /// The value as JSON; `null` if the key is not set. Of a secret, only the source is shown, and
    /// of a URL, neither credentials nor the query.
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

/// Returns every key of the configuration, in their order. A key that is not set and has no default
/// is `null`, and so is a table that is not there.
///
/// # Errors
/// Fails when the configuration cannot be serialized.
pub fn effective(loaded: &Loaded) -> Result<Vec<Effective>, EffectiveError> {
    let written: Value = loaded.sources.extract().map_err(Box::new)?;
    let mut rows = Vec::new();
    walk(
        &serde_json::to_value(with_derived_defaults(&loaded.config))?,
        Some(&written),
        &loaded.sources,
        &KeyPath::default(),
        &mut rows,
    );
    Ok(rows)
}

/// Sets the keys whose default follows from others.
fn with_derived_defaults(config: &Config) -> Config {
    let mut config = config.clone();
    let host = Url::parse(&config.base_url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    if let Some(broker) = &mut config.broker {
        let default = || Span::in_days(Lifetimes::default().grant);
        broker.grant_lifetime.get_or_insert_with(default);
        broker.page.name = broker.page.name.take().or(host);
        for provider in &mut broker.provider {
            provider.name = Some(provider.name().to_owned());
            if provider.scopes.is_empty() {
                let scopes = ProviderKind::from(provider.kind).default_scopes();
                provider.scopes = scopes.into_iter().map(str::to_owned).collect();
            }
        }
    }
    config
}

/// Walks both trees together: the typed one has every value, and the written one has the sources.
/// Keys that the typed one leaves out, because they are not set, are those of the schema.
fn walk(
    value: &Json,
    written: Option<&Value>,
    sources: &Figment,
    key: &KeyPath,
    rows: &mut Vec<Effective>,
) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            let known = schema::keys_of_table(key);
            let others = members.keys().map(String::as_str);
            let others = others.filter(|name| !known.contains(name));
            for name in known.iter().copied().chain(others) {
                let key = key.name(name);
                let unset = schema::unset_value(&key);
                let written = written
                    .and_then(Value::as_dict)
                    .and_then(|dict| dict.get(name));
                let value = members.get(name).unwrap_or(&unset);
                walk(value, written, sources, &key, rows);
            }
        }
        Json::Array(items) if items.iter().any(Json::is_object) => {
            for (position, item) in items.iter().enumerate() {
                let written = written
                    .and_then(Value::as_array)
                    .and_then(|array| array.get(position));
                walk(item, written, sources, &key.index(position), rows);
            }
        }
        leaf => {
            let origin = written
                .and_then(|written| sources.get_metadata(written.tag()))
                .map(describe);
            let key = with_dots(key);
            rows.push(Effective {
                value: without_secrets(&key, leaf),
                key,
                origin: origin.unwrap_or_else(|| "default".to_owned()),
            });
        }
    }
}

/// The key as in the names of environment variables and in JSON: `resource.0.endpoint`.
fn with_dots(key: &KeyPath) -> String {
    let parts = key.segments().iter().map(|segment| match segment {
        Segment::Name(name) => name.clone(),
        Segment::Index(position) => position.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
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

    /// J2: user, password and query of a URL are not shown.
    #[test]
    fn secrets_in_urls_are_not_shown() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "portcullis.toml",
                r#"
                base_url = "https://mcp.example.com"
                [[issuer]]
                issuer = "https://auth.example.com"
                proxy = "http://me:hunter2@proxy.example:3128"
                [[broker.provider]]
                kind = "google"
                client_id = "1-a.apps.googleusercontent.com"
                client_secret = { env = "A" }
                proxy = "http://me:hunter2@proxy.example:3128"
                [[resource]]
                endpoint = "/mcp"
                upstream = { http = "http://127.0.0.1:8000/mcp?key=hunter2" }
                [[resource]]
                endpoint = "/unix"
                upstream = { unix = "/run/mcp.sock:/mcp?key=hunter2" }
                "#,
            )?;
            let loaded = load(Path::new("portcullis.toml"), Overrides::default()).unwrap();
            let rows = effective(&loaded).unwrap();
            for (key, shown) in [
                ("issuer.0.proxy", "http://proxy.example:3128/"),
                ("broker.provider.0.proxy", "http://proxy.example:3128/"),
                ("resource.0.upstream.http", "http://127.0.0.1:8000/mcp"),
                ("resource.1.upstream.unix", "/run/mcp.sock:/mcp"),
                ("issuer.0.issuer", "https://auth.example.com"),
            ] {
                let row = rows.iter().find(|row| row.key == key).unwrap();
                assert_eq!(row.value, shown, "{key}");
            }
            let printed = serde_json::to_string(&rows).unwrap();
            assert!(!printed.contains("hunter2"), "{printed}");
            Ok(())
        });
    }

    /// J9: every key of the schema has a row in each table that the configuration has, also a key
    /// that is not set. Defaults that follow from other keys are shown.
    #[test]
    fn every_key_of_the_schema_has_a_row() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "portcullis.toml",
                r#"
                base_url = "https://mcp.example.com"
                [[broker.provider]]
                kind = "google"
                client_id = "1-a.apps.googleusercontent.com"
                client_secret = { env = "A" }
                allow = [{ claim = "hd", one_of = ["example.com"] }]
                [[resource]]
                endpoint = "/mcp"
                upstream = { http = "http://127.0.0.1:8000/mcp" }
                identity_headers = {}
                "#,
            )?;
            let loaded = load(Path::new("portcullis.toml"), Overrides::default()).unwrap();
            let rows = effective(&loaded).unwrap();
            for table in [
                "",
                "broker",
                "broker.clients",
                "broker.page",
                "broker.provider.0",
                "broker.provider.0.allow.0",
                "limits",
                "resource.0",
                "session",
            ] {
                let names = table.split('.').filter(|name| !name.is_empty());
                let keys = schema::keys_of(&KeyPath::from_names(names));
                assert!(!keys.is_empty(), "{table}");
                for name in keys {
                    let key = format!("{table}.{name}");
                    let key = key.trim_start_matches('.');
                    let below = format!("{key}.");
                    let has_row = |row: &Effective| row.key == key || row.key.starts_with(&below);
                    assert!(rows.iter().any(has_row), "{key}");
                }
            }
            for (key, value) in [
                ("broker.grant_lifetime", Json::from("180d")),
                ("broker.page.name", "mcp.example.com".into()),
                ("broker.provider.0.name", "google".into()),
                ("broker.provider.0.tenant", Json::Null),
                (
                    "broker.provider.0.scopes",
                    Json::from(vec!["openid", "profile", "email"]),
                ),
                ("admin", Json::Null),
            ] {
                let row = rows.iter().find(|row| row.key == key).unwrap();
                assert_eq!((&row.value, &*row.origin), (&value, "default"), "{key}");
            }
            let is_alternative = |row: &Effective| row.key.ends_with("client_secret.file");
            assert!(!rows.iter().any(is_alternative), "of a secret, one source");
            Ok(())
        });
    }
}
