//! All reasons why a configuration cannot be read.

use figment::{
    Error, Figment,
    error::Kind,
    value::{Dict, Map, Tag, Value},
};

use super::{Config, load::first_line};

/// The keys that every configuration has.
const REQUIRED: [&str; 2] = ["base_url", "resource"];

/// One reason for each top-level key, each issuer and each resource that is not as expected. `first` is the reason that was
/// found first.
pub(super) fn all(sources: &Figment, first: anyhow::Error) -> Vec<anyhow::Error> {
    let Ok(Value::Dict(_, root)) = sources.extract::<Value>() else { return vec![first] };
    let mut reasons = Vec::new();
    for (name, value) in &root {
        match value {
            Value::Array(_, items) if !items.is_empty() => {
                for (position, item) in items.iter().enumerate() {
                    let array = Value::Array(Tag::Default, vec![item.clone()]);
                    reasons.extend(check_alone(sources, &root, name, array, position));
                }
            }
            value => reasons.extend(check_alone(sources, &root, name, value.clone(), 0)),
        }
    }
    for name in REQUIRED.into_iter().filter(|name| !root.contains_key(*name)) {
        reasons.push(first_line(Kind::MissingField(name.into()).into(), sources));
    }
    if reasons.is_empty() { vec![first] } else { reasons }
}

/// Reads a configuration that has only this key, beside those that every one has. The only item of an array is the one at
/// `position`.
fn check_alone(sources: &Figment, root: &Dict, name: &str, value: Value, position: usize) -> Option<anyhow::Error> {
    let mut dict: Dict = Map::new();
    dict.insert("base_url".to_owned(), Value::from("http://127.0.0.1"));
    dict.insert("resource".to_owned(), Value::Array(Tag::Default, Vec::new()));
    dict.insert(name.to_owned(), value);
    let error = Value::Dict(Tag::Default, dict).deserialize::<Config>().err()?;
    let mut error: Error = error.into_iter().next()?;
    if let Some(item) = error.path.get_mut(1).filter(|item| *item == "0") {
        *item = position.to_string();
    }
    let tag = deepest(root.get(name)?, error.path.get(1..).unwrap_or_default()).tag();
    error.metadata = sources.get_metadata(tag).cloned();
    Some(first_line(error, sources))
}

/// The value at a path, or the nearest one above it.
fn deepest<'a>(value: &'a Value, path: &[String]) -> &'a Value {
    let Some((name, rest)) = path.split_first() else { return value };
    let below = match value {
        Value::Dict(_, dict) => dict.get(name),
        Value::Array(_, items) => name.parse().ok().and_then(|position: usize| items.get(position)),
        _ => None,
    };
    below.map_or(value, |below| deepest(below, rest))
}

#[cfg(test)]
#[expect(clippy::result_large_err, reason = "figment's jail wants its own error")]
mod tests {
    use std::path::Path;

    use figment::Jail;

    use crate::config::{Overrides, load_all_reasons};

    /// J10: each part that cannot be read has its reason, with its key and its source.
    #[test]
    fn every_part_has_its_reason() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "portcullis.toml",
                r#"
                lisen = "127.0.0.1:3000"
                shutdown_timeout = 5
                [[issuer]]
                issuer = "https://a.example"
                [[issuer]]
                issuer = "https://b.example"
                client_secret = "hunter2"
                [[resource]]
                endpoint = "/mcp"
                upstream = "demo"
                required_scope = []
                [[resource]]
                endpoint = "/other"
                "#,
            )?;
            jail.set_env("PORTCULLIS_WORKERS", "many");
            let reasons = load_all_reasons(Path::new("portcullis.toml"), Overrides::default()).err().unwrap();
            let reasons: Vec<String> = reasons.iter().map(|reason| format!("{reason:#}")).collect();
            for wanted in [
                ["`base_url` is missing", "portcullis.toml"],
                ["unknown key `lisen`", "did you mean `listen`?"],
                ["`shutdown_timeout`", "expected"],
                ["`issuer.1.client_secret`", "portcullis.toml"],
                ["unknown key `resource.0.required_scope`", "did you mean `required_scopes`?"],
                ["`resource.1.upstream` is missing", "portcullis.toml"],
                ["`workers`", "the environment"],
            ] {
                let has = |reason: &String| wanted.iter().all(|text| reason.contains(text));
                assert!(reasons.iter().any(has), "{wanted:?}: {reasons:#?}");
            }
            assert_eq!(reasons.len(), 7, "{reasons:#?}");
            assert!(reasons.iter().all(|reason| !reason.contains('\n') && !reason.contains("hunter2")), "{reasons:#?}");
            Ok(())
        });
    }

    #[test]
    fn a_file_that_is_no_toml_has_one_reason() {
        Jail::expect_with(|jail| {
            jail.create_file("portcullis.toml", "base_url = ")?;
            let reasons = load_all_reasons(Path::new("portcullis.toml"), Overrides::default()).err().unwrap();
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            let missing = load_all_reasons(Path::new("/nowhere.toml"), Overrides::default()).err().unwrap();
            assert!(missing.len() == 1 && missing[0].to_string().contains("/nowhere.toml"), "{missing:?}");
            Ok(())
        });
    }
}
