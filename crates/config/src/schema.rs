//! The JSON Schema of the configuration file, generated from its types.

mod number;

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{Config, KeyPath, Segment, toml_text};
pub(crate) use number::{meaning, range, unit};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    // The dialect that editors of TOML files (Taplo, Even Better TOML) read.
    let schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "Configuration of Portcullis".into());
    }
    schema
});

/// Returns the schema (JSON Schema draft 07).
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// Returns whether a file can have this key.
pub(crate) fn is_known(key: &KeyPath) -> bool {
    node(key).is_some()
}

/// Returns whether this is a known key with a fixed name, and not one of a table whose names the
/// operator chooses.
pub(super) fn has_fixed_name(key: &KeyPath) -> bool {
    let (Some(table), Some(Segment::Name(name))) = (key.parent(), key.segments().last()) else {
        return false;
    };
    keys_of(&table).contains(&name.as_str())
}

/// Returns the names of the keys that the table `key` can have. Empty if it is not a table with
/// fixed keys.
pub(super) fn keys_of(table: &KeyPath) -> Vec<&'static str> {
    let node = node(table);
    let properties = node
        .into_iter()
        .flat_map(variants)
        .filter_map(|node| node.get("properties")?.as_object());
    properties.flat_map(Map::keys).map(String::as_str).collect()
}

/// As [`keys_of`], for a table with one set of keys. Empty for one that has one of several forms,
/// such as `{ env = ".." }` and `{ file = ".." }`.
pub(super) fn keys_of_table(table: &KeyPath) -> Vec<&'static str> {
    let forms = node(table).into_iter().flat_map(variants);
    match forms
        .filter(|node| node.get("properties").is_some())
        .count()
    {
        1 => keys_of(table),
        _ => Vec::new(),
    }
}

/// Returns what a key has that is not set: an empty array or table, or `null`.
pub(super) fn unset_value(key: &KeyPath) -> Value {
    let nodes: Vec<_> = node(key).into_iter().flat_map(variants).collect();
    let is_optional = nodes.iter().any(|node| has_type(node, "null"));
    let is_map = |node: &&&Value| {
        node.get("additionalProperties")
            .is_some_and(Value::is_object)
    };
    if is_optional {
        Value::Null
    } else if nodes.iter().any(|node| has_type(node, "array")) {
        Value::Array(Vec::new())
    } else if nodes.iter().any(|node| is_map(&node)) {
        Value::Object(Map::new())
    } else {
        Value::Null
    }
}

fn has_type(node: &Value, name: &str) -> bool {
    match node.get("type") {
        Some(Value::String(found)) => found == name,
        Some(Value::Array(found)) => found.iter().any(|found| found == name),
        _ => false,
    }
}

/// Returns the headers of the tables that can have a key with this name, such as `[limits]` and
/// `[[issuer]]`.
pub(super) fn tables_with(name: &str) -> Vec<String> {
    homes_of(name).into_iter().map(|home| home.table).collect()
}

/// Returns the headers of the tables with this name that are in other tables, such as
/// `[[resource.rule]]`.
pub(super) fn tables_named(name: &str) -> Vec<String> {
    let homes = homes_of(name).into_iter();
    homes.filter_map(|home| home.header).collect()
}

/// Returns the values that a key with a fixed list of them can have, as in TOML: names, such as
/// `"on"`, and forms, such as `{ file = "…" }`. Empty for other keys.
pub(super) fn choices(key: &KeyPath) -> Vec<String> {
    let choice = |node: &'static Value| {
        if let Some(name) = node.get("const").and_then(Value::as_str) {
            return Some(toml_text::string(name));
        }
        let members = node.get("properties")?.as_object()?;
        let name = members.keys().next().filter(|_| members.len() == 1)?;
        Some(format!("{{ {name} = \"…\" }}"))
    };
    let nodes = node(key).into_iter().flat_map(variants);
    nodes.filter_map(choice).collect()
}

/// Returns whether the value of a key is the source of a secret, or an array of them.
pub(super) fn is_secret(key: &KeyPath) -> bool {
    keys_of(key) == ["env", "file"]
}

/// Returns an example of the value of a key: the one of the schema, or the default.
pub(super) fn example(key: &KeyPath) -> Option<&'static Value> {
    let node = node(key)?;
    let of = |node: &'static Value| {
        let default = node
            .get("default")
            .filter(|value| !value.is_null() && !is_empty(value));
        node.get("examples")
            .and_then(|examples| examples.get(0))
            .or(default)
    };
    of(node).or_else(|| variants(node).into_iter().find_map(of))
}

/// Returns the type of a key as in JSON Schema, such as `integer`; the first one if the key has
/// several.
pub(super) fn type_name(key: &KeyPath) -> Option<&'static str> {
    variants(node(key)?)
        .into_iter()
        .find_map(|node| match node.get("type")? {
            Value::String(name) => Some(name.as_str()),
            Value::Array(names) => names.first()?.as_str(),
            _ => None,
        })
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn node(key: &KeyPath) -> Option<&'static Value> {
    key.segments().iter().try_fold(&*SCHEMA, |node, segment| {
        variants(node).into_iter().find_map(|node| match segment {
            Segment::Index(_) => node.get("items"),
            Segment::Name(name) => {
                let named = node
                    .get("properties")
                    .and_then(|properties| properties.get(name));
                named.or_else(|| {
                    node.get("additionalProperties")
                        .filter(|schema| schema.is_object())
                })
            }
        })
    })
}

/// The node, what it refers to, and its alternatives.
fn variants(node: &'static Value) -> Vec<&'static Value> {
    let mut found = vec![node];
    let mut position = 0;
    while let Some(node) = found.get(position).copied() {
        let reference = node
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'));
        found.extend(reference.and_then(|pointer| SCHEMA.pointer(pointer)));
        for name in ["anyOf", "oneOf", "allOf"] {
            found.extend(
                node.get(name)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        }
        position += 1;
    }
    found
}

/// A table that can have a key with a searched name.
struct Home {
    /// The header of the table.
    table: String,
    /// The header of the key itself, if its value is a table or an array of tables.
    header: Option<String>,
}

fn homes_of(name: &str) -> Vec<Home> {
    let mut found = Vec::new();
    find_homes(&SCHEMA, name, String::new(), false, &mut found);
    found
}

fn find_homes(
    node: &'static Value,
    name: &str,
    path: String,
    is_array: bool,
    found: &mut Vec<Home>,
) {
    for node in variants(node) {
        if let Some(items) = node.get("items") {
            find_homes(items, name, path.clone(), true, found);
        }
        let Some(properties) = node.get("properties").and_then(Value::as_object) else {
            continue;
        };
        if let Some(below) = properties.get(name).filter(|_| !path.is_empty()) {
            found.push(Home {
                table: header(&path, is_array),
                header: table_type(below)
                    .map(|is_array| header(&format!("{path}.{name}"), is_array)),
            });
        }
        for (key, below) in properties {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            find_homes(below, name, path, false, found);
        }
    }
}

fn header(path: &str, is_array: bool) -> String {
    if is_array {
        format!("[[{path}]]")
    } else {
        format!("[{path}]")
    }
}

/// Returns whether the node is an array of tables; `None` if it is neither that nor a table.
fn table_type(node: &'static Value) -> Option<bool> {
    let is_table = |node: &Value| node.get("properties").is_some();
    variants(node)
        .into_iter()
        .find_map(|node| match node.get("items") {
            Some(items) => variants(items).into_iter().any(is_table).then_some(true),
            None => is_table(node).then_some(false),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> KeyPath {
        KeyPath::parse(key)
    }

    /// J9: the schema has the keys of all tables, and no others.
    #[test]
    fn keys_are_found() {
        for key in [
            "listen",
            "issuer",
            "issuer[3].jwks.cooldown",
            "resource[0].rule[1].claims[0].one_of[0]",
            "resource[0].upstream.http",
            "limits.per_address.requests",
            "session.keys[0].env",
            "audit.target.file",
            "tls.key",
        ] {
            assert!(is_known(&at(key)), "{key}");
        }
        assert!(has_fixed_name(&at("resource[0].identity_headers")));
        assert!(!has_fixed_name(&at("resource[0].identity_headers.the")));

        for key in [
            "lisen",
            "issuer.issuer",
            "issuer[0].cooldown",
            "resource[0].upstream.htp",
            "limits[0]",
        ] {
            assert!(!is_known(&at(key)), "{key}");
        }
        assert!(keys_of(&at("session")).contains(&"idle_timeout"));
        assert!(keys_of(&KeyPath::default()).contains(&"base_url"));
    }

    /// J9: every key has a description, and every value an example or a default.
    #[test]
    fn keys_are_described() {
        fn is_table(node: &'static Value) -> bool {
            let is_one = |node: &Value| node.get("properties").is_some();
            variants(node)
                .into_iter()
                .any(|node| is_one(node) || node.get("items").is_some_and(is_table))
        }

        fn walk(node: &'static Value, path: &str) {
            for node in variants(node) {
                let members = node.get("properties").and_then(Value::as_object);
                for (key, below) in members.into_iter().flatten() {
                    let path = format!("{path}/{key}");
                    let describes = |node: &&Value| node.get("description").is_some();
                    // The description and the example of a form, such as `{ file = "…" }`, are
                    // those of its only key.
                    let is_form = members.is_some_and(|members| members.len() == 1);
                    let is_described =
                        variants(below).iter().any(describes) || (is_form && describes(&node));
                    assert!(is_described, "{path} has no description");
                    let has_value = |node: &&Value| {
                        node.get("examples").is_some() || node.get("default").is_some()
                    };
                    let has_value =
                        variants(below).iter().any(has_value) || is_form || is_table(below);
                    assert!(has_value, "{path} has no example and no default");
                    walk(below, &path);
                }
                if let Some(items) = node.get("items") {
                    walk(items, path);
                }
            }
        }
        walk(schema(), "");
        for (key, words) in [
            ("admin", "administrators"),
            ("traces", "spans"),
            ("audit", "audit trail"),
        ] {
            let description = schema()["properties"][key]["description"]
                .as_str()
                .unwrap_or_default();
            assert!(description.contains(words), "{key}: {description}");
        }
        assert_eq!(example(&at("session.idle_timeout")), Some(&"30m".into()));
        assert_eq!(
            example(&at("base_url")),
            Some(&"https://mcp.example.com".into())
        );
        assert_eq!(type_name(&at("limits.max_body")), Some("integer"));
    }

    #[test]
    fn tables_of_a_key_are_found() {
        assert_eq!(tables_with("max_body"), ["[limits]"]);
        assert_eq!(tables_with("jwks_uri"), ["[[issuer]]"]);
        assert!(tables_with("scopes").contains(&"[[resource.rule]]".to_owned()));
        assert!(tables_with("base_url").is_empty());
    }

    #[test]
    fn tables_in_tables_are_found() {
        assert_eq!(tables_named("rule"), ["[[resource.rule]]"]);
        assert_eq!(tables_named("jwks"), ["[issuer.jwks]"]);
        assert_eq!(tables_named("clients"), ["[broker.clients]"]);
        assert!(tables_named("max_body").is_empty());
    }

    #[test]
    fn values_of_a_list_are_found() {
        assert_eq!(choices(&at("resource[0].sessions")), ["\"on\"", "\"off\""]);
        assert_eq!(
            choices(&at("resource[0].upstream")),
            ["\"demo\"", "{ http = \"…\" }", "{ unix = \"…\" }"]
        );
        assert!(choices(&at("resource[0].endpoint")).is_empty());
        assert!(choices(&at("limits.per_address")).is_empty());
        assert!(is_secret(&at("issuer[0].client_secret")));
        assert!(is_secret(&at("session.keys[0]")));
        assert!(!is_secret(&at("audit.target")));
        assert_eq!(unit(&at("limits.max_body")), " bytes");
        assert_eq!(unit(&at("audit.rotate_size")), " bytes");
        assert_eq!(unit(&at("limits.max_depth")), "");
    }
}
