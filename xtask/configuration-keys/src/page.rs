//! The page: a table of keys for each table of the file.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{schema::Schema, value::toml};

const HEAD: &str = "\
# Keys of the configuration

Every key of the file, as `portcullis check` reads it. [Configuration](configuration.md) says how a file is written, and has the pages that
explain the tables. `portcullis config-schema` prints the same for editors.

This page is generated from the sources by `cargo xtask configuration-keys`.
";

/// A table of the file.
struct Table<'a> {
    /// Its header, without brackets. Empty for the top level.
    path: String,
    /// Whether it can be repeated.
    is_list: bool,
    schema: &'a Value,
    /// What a file without the table has in its place.
    default: Option<&'a Value>,
}

/// Returns the page for a schema.
pub(crate) fn of(schema: &Value) -> String {
    let schema = Schema::new(schema);
    let mut page = HEAD.to_owned();
    let mut tables = vec![Table {
        path: String::new(),
        is_list: false,
        schema: schema.root(),
        default: None,
    }];
    // A table is followed by those in it.
    while let Some(table) = tables.pop() {
        let inner = write_table(&schema, &table, &mut page);
        tables.extend(inner.into_iter().rev());
    }
    page
}

/// Writes the keys of a table, and returns the tables in it.
fn write_table<'a>(schema: &Schema<'a>, table: &Table<'a>, page: &mut String) -> Vec<Table<'a>> {
    let mut inner = Vec::new();
    let mut rows = String::new();
    for (key, node) in schema.keys(table.schema).into_iter().flatten() {
        let description = schema.description(node);
        if let Some((below, is_list)) = schema.table(node) {
            inner.push(Table {
                path: join(&table.path, key),
                is_list,
                schema: below,
                default: node.get("default"),
            });
            continue;
        }
        let is_required = schema.is_required(table.schema, key);
        let default = match node.get("default") {
            _ if is_required => "required".to_owned(),
            Some(default) if !default.is_null() => code(default),
            _ => String::new(),
        };
        let example = schema.example(node).map(code).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(
            rows,
            "| `{key}` | {} | {default} | {example} | {} |",
            schema.type_name(node),
            cell(description)
        );
    }
    let title = match (table.path.as_str(), table.is_list) {
        ("", _) => "Top level".to_owned(),
        (path, true) => format!("`[[{path}]]`"),
        (path, false) => format!("`[{path}]`"),
    };
    let _ = write!(page, "\n## {title}\n\n");
    // Where a key is optional, its row has its default.
    let has_required = table.schema.get("required").is_some();
    if let Some(default) = table
        .default
        .filter(|default| default.is_object() && has_required)
    {
        let _ = write!(page, "Default: {}.\n\n", code(default));
    }
    if !rows.is_empty() {
        let _ = write!(
            page,
            "| key | type | default | example | meaning |\n|---|---|---|---|---|\n{rows}"
        );
    }
    inner
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn code(value: &Value) -> String {
    format!("`{}`", cell(&toml(value)))
}

/// Returns a text that a cell of a table can have.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_follow_the_keys_of_the_one_that_has_them() {
        let page = of(&json!({
            "properties": {
                "list": { "type": "array", "items": { "$ref": "#/definitions/Inner" }, "default": [] },
                "on": { "type": "boolean", "default": false, "description": "A\nswitch | or not." },
                "name": { "type": ["string", "null"], "description": "A name.", "examples": ["x"] },
            },
            "required": ["name"],
            "definitions": { "Inner": { "type": "object", "properties": {
                "time": { "type": "string", "title": "duration", "default": "1s", "description": "A time." },
                "rate": { "type": "object", "properties": { "number": { "type": "integer", "description": "A number." } },
                    "required": ["number"], "default": { "number": 1 } },
                "kind": { "default": "a", "description": "Which.", "allOf": [{ "oneOf": [
                    { "const": "a", "type": "string" }, { "enum": ["b", "c"], "type": "string" },
                    { "type": "object", "properties": { "file": { "type": "string" } } },
                ] }] },
            } } },
        }));
        let tables = page.split_once("\n## ").unwrap().1;
        assert_eq!(
            tables,
            "Top level\n\n| key | type | default | example | meaning |\n|---|---|---|---|---|\n\
             | `on` | boolean | `false` |  | A switch \\| or not. |\n\
             | `name` | string | required | `\"x\"` | A name. |\n\
             \n## `[[list]]`\n\n| key | type | default | example | meaning |\n|---|---|---|---|---|\n\
             | `time` | duration | `\"1s\"` |  | A time. |\n\
             | `kind` | `\"a\"`, `\"b\"`, `\"c\"`, `{ file = … }` | `\"a\"` |  | Which. |\n\
             \n## `[list.rate]`\n\nDefault: `{ number = 1 }`.\n\n| key | type | default | example | meaning |\n|---|---|---|---|---|\n\
             | `number` | integer | required |  | A number. |\n"
        );
    }
}
