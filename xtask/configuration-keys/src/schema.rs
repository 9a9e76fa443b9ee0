//! [`Schema`]: what the page asks the JSON Schema.

use serde_json::{Map, Value};

/// The schema of the configuration.
pub(crate) struct Schema<'a>(&'a Value);

impl<'a> Schema<'a> {
    pub(crate) fn new(schema: &'a Value) -> Self {
        Self(schema)
    }

    pub(crate) fn root(&self) -> &'a Value {
        self.0
    }

    /// Returns the keys of a table with fixed keys.
    pub(crate) fn keys(&self, node: &'a Value) -> Option<&'a Map<String, Value>> {
        node.get("properties")?.as_object()
    }

    pub(crate) fn is_required(&self, table: &Value, key: &str) -> bool {
        let required = table.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == key))
    }

    /// Returns the table of a key, and whether the key is a list of them. `None` if it has another
    /// value, which includes values with several forms.
    pub(crate) fn table(&self, node: &'a Value) -> Option<(&'a Value, bool)> {
        let alternatives = self.alternatives(node);
        let [only] = alternatives.as_slice() else {
            return None;
        };
        match only.get("items") {
            Some(items) => Some((self.table(items)?.0, true)),
            None => self.keys(only).map(|_| (*only, false)),
        }
    }

    /// Returns the description of a key, or of its type.
    pub(crate) fn description(&self, node: &'a Value) -> &'a str {
        let of = |node: &'a Value| node.get("description")?.as_str();
        of(node)
            .or_else(|| self.alternatives(node).into_iter().find_map(of))
            .unwrap_or_default()
    }

    pub(crate) fn example(&self, node: &'a Value) -> Option<&'a Value> {
        node.get("examples")?.get(0)
    }

    /// Returns the types of a value, or its possible values, in Markdown.
    pub(crate) fn type_name(&self, node: &'a Value) -> String {
        let alternatives = self.alternatives(node);
        let mut names: Vec<_> = alternatives.into_iter().map(|one| self.form(one)).collect();
        names.dedup();
        names.join(", ")
    }

    /// Returns one of the types of a value.
    fn form(&self, node: &'a Value) -> String {
        let types = match node.get("type") {
            Some(Value::Array(types)) => types.first(),
            one => one,
        };
        let constants = node.get("const").map(std::slice::from_ref);
        let listed = || node.get("enum")?.as_array().map(Vec::as_slice);
        if let Some(constants) = constants.or_else(listed) {
            let quoted = constants.iter().map(|constant| format!("`{constant}`"));
            return quoted.collect::<Vec<_>>().join(", ");
        }
        if let Some(title) = node.get("title").and_then(Value::as_str) {
            return title.to_owned();
        }
        match types.and_then(Value::as_str).unwrap_or("any") {
            "array" => {
                let of = node.get("items").map(|items| self.type_name(items));
                format!("list of {}", of.unwrap_or_default())
            }
            "object" => match self.keys(node) {
                Some(keys) => {
                    let keys = keys.keys().map(|key| format!("{key} = …"));
                    format!("`{{ {} }}`", keys.collect::<Vec<_>>().join(", "))
                }
                None => "table".to_owned(),
            },
            name => name.to_owned(),
        }
    }

    /// Returns the forms of a value: its alternatives, without `null`, through references.
    fn alternatives(&self, node: &'a Value) -> Vec<&'a Value> {
        let reference = node.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|name| self.0.pointer(name.strip_prefix('#')?)) {
            return self.alternatives(target);
        }
        for name in ["anyOf", "oneOf", "allOf"] {
            if let Some(alternatives) = node.get(name).and_then(Value::as_array) {
                let forms = alternatives.iter().flat_map(|one| self.alternatives(one));
                return forms.filter(|one| one["type"] != "null").collect();
            }
        }
        vec![node]
    }
}
