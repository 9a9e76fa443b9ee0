//! Comparison of two configurations, for the log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use url::Url;

use super::Config;

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 300;

/// A value that differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key, such as `resource["/mcp"].realm`, or `issuer` if only the order has changed.
    /// Issuers and resources are named by their identifier and endpoint, and so are providers with
    /// a configured name.
    pub key: String,
    /// The old value: JSON of at most 300 characters, `unset`, or, for a whole issuer or resource,
    /// `present` or `absent`.
    pub old: String,
    /// The new value in the same form.
    pub new: String,
}

/// The values that differ, in the order of their keys. Secrets are not part of a configuration;
/// credentials and queries of URLs are not shown.
pub fn changes(old_config: &Config, new_config: &Config) -> Vec<Change> {
    let old = rows(old_config);
    let new = rows(new_config);
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    let mut whole = None;
    for key in keys {
        // The values of an issuer or a resource that is new or removed are one change.
        if whole
            .as_ref()
            .is_some_and(|table: &String| key.starts_with(table.as_str()))
        {
            continue;
        }
        let before = old.get(key);
        let after = new.get(key);
        if before == after {
            continue;
        }
        let is_table = [before, after].contains(&Some(&Row::Table));
        if is_table {
            whole = Some(format!("{key}."));
        }
        let shown = |row| shown(key, row, is_table);
        found.push(Change {
            key: key.clone(),
            old: shown(before),
            new: shown(after),
        });
    }
    found.extend(changed_orders(old_config, new_config));
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// Returns the lists whose order matters and has changed: that of issuers is the one of the
/// metadata, and that of providers the one of the sign-in page.
fn changed_orders(old: &Config, new: &Config) -> Vec<Change> {
    let issuers = |config: &Config| -> Vec<String> {
        let issuers = config.issuer.iter();
        issuers.map(|issuer| issuer.issuer.clone()).collect()
    };
    let providers = |config: &Config| -> Vec<String> {
        let providers = config.broker.iter().flat_map(|broker| &broker.provider);
        providers
            .filter_map(|provider| provider.name.clone())
            .collect()
    };
    [
        changed_order("issuer", issuers(old), issuers(new)),
        changed_order("broker.provider", providers(old), providers(new)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Compares the order of the names that are in both lists.
fn changed_order(key: &str, old: Vec<String>, new: Vec<String>) -> Option<Change> {
    let common = |names: &[String], others: &[String]| -> Vec<String> {
        let common = names.iter().filter(|name| others.contains(name));
        common.cloned().collect()
    };
    let (old, new) = (common(&old, &new), common(&new, &old));
    let shown = |names: Vec<String>| shown(key, Some(&Row::Value(names.into())), false);
    (old != new).then(|| Change {
        key: key.to_owned(),
        old: shown(old),
        new: shown(new),
    })
}

#[derive(PartialEq)]
enum Row {
    /// An issuer or a resource.
    Table,
    Value(Value),
}

fn rows(config: &Config) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    // A configuration was read from such values, so it can be written.
    add(
        String::new(),
        serde_json::to_value(config).unwrap_or_default(),
        &mut rows,
    );
    rows
}

fn add(key: String, value: Value, rows: &mut BTreeMap<String, Row>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                add(
                    if key.is_empty() {
                        name
                    } else {
                        format!("{key}.{name}")
                    },
                    member,
                    rows,
                );
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let identifier = match key.as_str() {
                "issuer" => "issuer",
                "resource" => "endpoint",
                "broker.provider" => "name",
                "broker.introspection" => "client_id",
                _ => "",
            };
            for (position, item) in items.into_iter().enumerate() {
                match item.get(identifier) {
                    Some(name) => {
                        let key = format!("{key}[{name}]");
                        rows.insert(key.clone(), Row::Table);
                        add(key, item, rows);
                    }
                    None => add(format!("{key}[{position}]"), item, rows),
                }
            }
        }
        value => {
            rows.insert(key, Row::Value(value));
        }
    }
}

fn shown(key: &str, row: Option<&Row>, is_table: bool) -> String {
    let text = match row {
        None if is_table => return "absent".to_owned(),
        None => return "unset".to_owned(),
        Some(Row::Table) => return "present".to_owned(),
        Some(Row::Value(value)) => without_secrets(key, value).to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The value without what may be secret in URLs: user, password and query. The fragment stays,
/// because it is a setting in the URL of a store (`#insecure`); a URL without these parts stays as
/// it is written.
pub(crate) fn without_secrets(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if key.ends_with(".unix") => text
            .split_once('?')
            .map_or(text.as_str(), |(place, _)| place)
            .into(),
        Value::String(text) => match Url::parse(text) {
            Ok(mut url)
                if !url.username().is_empty()
                    || url.password().is_some()
                    || url.query().is_some() =>
            {
                url.set_query(None);
                // It fails only for URLs that can have neither.
                let _ = url.set_password(None).and_then(|()| url.set_username(""));
                url.as_str().into()
            }
            _ => value.clone(),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| without_secrets(key, item))
            .collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    const OLD: &str = r#"
        base_url = "http://127.0.0.1:3000"
        [[issuer]]
        issuer = "https://a.example"
        [[issuer]]
        issuer = "https://b.example"
        proxy = "http://me:hunter2@proxy.example:1"
        [[resource]]
        endpoint = "/a"
        upstream = { http = "http://127.0.0.1:1/?key=hunter2" }
        [[resource.rule]]
        method = "tools/*"
        scopes = ["x"]
        [[resource]]
        endpoint = "/b"
        upstream = "demo"
    "#;

    fn compare(edits: &[(&str, &str)]) -> Vec<Change> {
        let mut text = OLD.to_owned();
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        changes(&from_text(OLD).unwrap(), &from_text(&text).unwrap())
    }

    fn change(key: &str, old: &str, new: &str) -> Change {
        Change {
            key: key.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    /// J10: the log names what changed, by names that do not depend on the order.
    #[test]
    fn values_are_compared_by_name() {
        assert_eq!(compare(&[]), []);
        let edits = [
            ("\"/b\"", "\"/b\"\nrealm = \"r\""),
            ("scopes = [\"x\"]", "scopes = []\nname = \"n\""),
        ];
        assert_eq!(
            compare(&edits),
            [
                change("resource[\"/a\"].rule[0].name", "unset", "\"n\""),
                change("resource[\"/a\"].rule[0].scopes", "[\"x\"]", "unset"),
                change("resource[\"/b\"].realm", "\"mcp\"", "\"r\""),
            ]
        );
        assert_eq!(
            compare(&[("base_url", "workers = 2\nbase_url")]),
            [change("workers", "unset", "2")]
        );
    }

    /// J10: an issuer or a resource that is new or removed is one change, and moves none of the
    /// others.
    #[test]
    fn whole_tables_are_one_change() {
        assert_eq!(
            compare(&[
                ("https://a.example", "https://c.example"),
                ("\"/b\"", "\"/c\"")
            ]),
            [
                change("issuer[\"https://a.example\"]", "present", "absent"),
                change("issuer[\"https://c.example\"]", "absent", "present"),
                change("resource[\"/b\"]", "present", "absent"),
                change("resource[\"/c\"]", "absent", "present"),
            ]
        );
    }

    /// J10: the order of issuers and of providers is a value of its own. New and removed ones do
    /// not change it, nor does the order of resources.
    #[test]
    fn the_order_is_compared() {
        let swapped = [
            ("https://a.example", "https://c.example"),
            ("https://b.example", "https://a.example"),
            ("https://c.example", "https://b.example"),
        ];
        let (old, new) = ("https://a.example", "https://b.example");
        assert_eq!(
            compare(&swapped)[0],
            change(
                "issuer",
                &format!("[\"{old}\",\"{new}\"]"),
                &format!("[\"{new}\",\"{old}\"]")
            )
        );
        assert_eq!(
            compare(&[
                ("\"/a\"", "\"/c\""),
                ("\"/b\"", "\"/a\""),
                ("\"/c\"", "\"/b\""),
            ])
            .iter()
            .find(|change| change.key == "resource"),
            None
        );
        let providers = |names: &[&str]| {
            let provider = |name: &&str| {
                format!(
                    "[[broker.provider]]\nname = '{name}'\nkind = 'oidc'\nclient_id = 'a'\nclient_secret = {{ env = 'A' }}\n"
                )
            };
            let providers: String = names.iter().map(provider).collect();
            let text = format!("base_url = 'https://a.example'\nresource = []\n{providers}");
            from_text(&text).unwrap()
        };
        assert_eq!(
            changes(&providers(&["a", "b", "c"]), &providers(&["d", "b", "a"])),
            [
                change("broker.provider", "[\"a\",\"b\"]", "[\"b\",\"a\"]"),
                change("broker.provider[\"c\"]", "present", "absent"),
                change("broker.provider[\"d\"]", "absent", "present"),
            ]
        );
    }

    /// J10: providers and resource servers elsewhere are named, too.
    #[test]
    fn tables_of_the_broker_are_named() {
        let config = |tables: &str| {
            from_text(&format!(
                "base_url = 'https://a.example'\nresource = []\n{tables}"
            ))
            .unwrap()
        };
        let provider = |name: &str, scope: &str| {
            format!(
                "[[broker.provider]]\nname = '{name}'\nkind = 'oidc'\nclient_id = 'a'\nclient_secret = {{ env = 'A' }}\n\
                 scopes = ['{scope}']\n"
            )
        };
        let server = "[[broker.introspection]]\nclient_id = 'rs'\nclient_secret = { env = 'A' }\nresource = '/a'\n";
        let old = config(&(provider("a", "x") + &provider("b", "x")));
        let new = config(&(provider("b", "y") + server));
        assert_eq!(
            changes(&old, &new),
            [
                change("broker.introspection[\"rs\"]", "absent", "present"),
                change("broker.provider[\"a\"]", "present", "absent"),
                change("broker.provider[\"b\"].scopes", "[\"x\"]", "[\"y\"]"),
            ]
        );
    }

    /// J2, J10: user, password and query of a URL are not shown, and their change is reported.
    #[test]
    fn secrets_are_not_shown() {
        let proxy = "\"http://proxy.example:1/\"";
        assert_eq!(
            compare(&[
                ("hunter2@", "swordfish@"),
                ("127.0.0.1:1/?key=hunter2", "127.0.0.1:2/?key=swordfish")
            ]),
            [
                change("issuer[\"https://b.example\"].proxy", proxy, proxy),
                change(
                    "resource[\"/a\"].upstream.http",
                    "\"http://127.0.0.1:1/\"",
                    "\"http://127.0.0.1:2/\""
                ),
            ]
        );
        let many = format!(
            "trusted_proxies = [{}]\nbase_url",
            "\"10.0.0.0/8\",".repeat(99)
        );
        let long = compare(&[("base_url", &many)]);
        assert!(long[0].new.len() <= MAX_SHOWN + 3, "{long:?}");
    }
}
