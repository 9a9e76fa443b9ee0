//! Other tables that have a key of the same name as an unknown one.

use crate::{KeyPath, schema};

/// Names that mean something else in each table. A key with one of them is not moved to another
/// table, unless that is in its table.
const OF_ANY_TABLE: &[&str] = &[
    "allow",
    "auth",
    "claims",
    "client",
    "default",
    "domain",
    "endpoint",
    "env",
    "file",
    "grant",
    "headers",
    "http",
    "idle_timeout",
    "keep",
    "key",
    "keys",
    "kind",
    "lifetime",
    "limit",
    "method",
    "methods",
    "name",
    "password",
    "path",
    "per",
    "proxy",
    "queue",
    "registration",
    "requests",
    "resource",
    "sample",
    "scopes",
    "service_name",
    "strict",
    "target",
    "token",
    "unix",
];

/// Returns the headers that can be written for the unknown table `name` in `table`.
pub(super) fn headers_for(name: &str, table: &KeyPath) -> Vec<String> {
    with_same_meaning(name, schema::tables_named(name), table)
}

/// Returns the headers of the tables to which the key `name` of `table` can be moved.
pub(super) fn with_key(name: &str, table: &KeyPath) -> Vec<String> {
    with_same_meaning(name, schema::tables_with(name), table)
}

fn with_same_meaning(name: &str, headers: Vec<String>, table: &KeyPath) -> Vec<String> {
    let mut headers = within(headers, table);
    if OF_ANY_TABLE.contains(&name) {
        headers.retain(|header| is_within(header, table));
    }
    headers
}

/// Returns the headers that are in `table`, if there are some: the key was probably written before
/// their header instead of after it. Otherwise all.
fn within(mut headers: Vec<String>, table: &KeyPath) -> Vec<String> {
    if headers.iter().any(|header| is_within(header, table)) {
        headers.retain(|header| is_within(header, table));
    }
    headers
}

fn is_within(header: &str, table: &KeyPath) -> bool {
    let within = format!("{}.", table.header());
    header.trim_start_matches('[').starts_with(&within)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Below an array of tables, too.
    #[test]
    fn tables_within_the_table_come_first() {
        let tables_with =
            |name, table: &str| within(schema::tables_with(name), &KeyPath::parse(table));
        assert_eq!(tables_with("cooldown", "issuer[0]"), ["[issuer.jwks]"]);
        let everywhere = schema::tables_with("scopes");
        let within = tables_with("scopes", "resource[0]");
        assert!(
            within.iter().all(|header| header.contains("resource.")),
            "{within:?}"
        );
        assert_eq!(tables_with("scopes", "session"), everywhere);
        assert_eq!(tables_with("scopes", ""), everywhere);
    }

    /// J9: a key is not moved to a table in which it means something else.
    #[test]
    fn keys_keep_their_meaning() {
        let names_exist = |name: &&&str| schema::tables_with(name).is_empty();
        assert_eq!(OF_ANY_TABLE.iter().find(names_exist), None);
        let with_key = |name, table| with_key(name, &KeyPath::parse(table));
        for (name, table) in [
            ("headers", "resource[0]"),
            ("allow", "resource[0]"),
            ("name", "session"),
            ("auth", ""),
        ] {
            assert_eq!(
                with_key(name, table),
                Vec::<String>::new(),
                "{table} {name}"
            );
        }
        assert_eq!(with_key("allow", "broker"), ["[[broker.provider]]"]);
        assert_eq!(with_key("max_body", "session"), ["[limits]"]);
        let headers_for = |name| headers_for(name, &KeyPath::default());
        assert_eq!(headers_for("claim"), ["[[resource.claim]]"]);
        assert_eq!(headers_for("allow"), Vec::<String>::new());
    }
}
