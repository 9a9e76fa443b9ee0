//! [`ToolHeaders`]: the tool arguments that are also sent as headers.

use std::{
    collections::{HashMap, HashSet},
    sync::{PoisonError, RwLock},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::encode_mirrored;
use serde_json::{Map, Value};

/// The arguments of each tool that are also sent as headers (2026-07-28, "Custom Headers from Tool Parameters").
#[derive(Default)]
pub(crate) struct ToolHeaders(RwLock<HashMap<String, Vec<Parameter>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parameter {
    header: HeaderName,
    /// The path of properties from the arguments to it.
    path: Vec<String>,
}

const ANNOTATION: &str = "x-mcp-header";
/// The maximum number of tools that are stored; the arguments of others are sent only in the body.
const MAX_TOOLS: usize = 1000;
const MAX_DEPTH: usize = 64;
/// The maximum number of pages of tools that are searched for one tool.
pub(crate) const MAX_PAGES: u32 = 32;
/// Members of a schema whose value is data, not a schema.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", ANNOTATION];
/// The largest integer that every JSON parser represents exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

impl ToolHeaders {
    /// Stores the tools of a list, and removes tools with invalid annotations from it.
    pub(crate) fn learn(&self, list: &mut Value) {
        let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) else { return };
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            match parameters(tool.get("inputSchema").unwrap_or(&Value::Null)) {
                Some(parameters) if known.len() < MAX_TOOLS || known.contains_key(name) => {
                    known.insert(name.to_owned(), parameters);
                    true
                }
                Some(_) => true,
                None => {
                    tracing::warn!(tool = ?name, "a tool is removed from the list: its x-mcp-header annotations are invalid");
                    known.remove(name);
                    false
                }
            }
        });
    }

    /// The headers for a call.
    pub(crate) fn of_call(&self, params: Option<&Value>) -> HeaderMap {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let called = params.and_then(|params| known.get(params.get("name")?.as_str()?));
        let arguments = params.and_then(|params| params.get("arguments"));
        let parameters = called.into_iter().flatten();
        parameters
            .filter_map(|parameter| {
                let value = parameter.path.iter().try_fold(arguments?, |value, name| value.get(name))?;
                Some((parameter.header.clone(), text(value)?))
            })
            .collect()
    }
}

/// The cursor of the page of tools after this one. None if this page is the last one, or has the tool.
pub(crate) fn next_cursor(page: &Value, tool: Option<&str>) -> Option<Value> {
    let mut tools = page.get("tools").and_then(Value::as_array).into_iter().flatten();
    if tools.any(|listed| listed.get("name").and_then(Value::as_str) == tool) {
        return None;
    }
    page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned()
}

/// The header value of an argument. None for values that cannot be headers.
fn text(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => Some(encode_mirrored(text)),
        Value::Bool(flag) => Some(encode_mirrored(if *flag { "true" } else { "false" })),
        Value::Number(number) => {
            let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64())?;
            (size <= MAX_INTEGER).then(|| encode_mirrored(&number.to_string()))
        }
        _ => None,
    }
}

/// The annotated parameters of a schema. None if an annotation is invalid.
fn parameters(schema: &Value) -> Option<Vec<Parameter>> {
    let mut found = Vec::new();
    walk(schema, Some(&mut Vec::new()), 0, &mut found)?;
    let mut names = HashSet::new();
    found.iter().all(|parameter| names.insert(&parameter.header)).then_some(())?;
    Some(found)
}

/// Walks through a schema. `path` is None below anything but `properties`.
fn walk(schema: &Value, path: Option<&mut Vec<String>>, depth: usize, found: &mut Vec<Parameter>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(schemas) => return schemas.iter().try_for_each(|schema| walk(schema, None, depth + 1, found)),
        _ => return Some(()),
    };
    let mut path = path;
    if let Some(annotation) = members.get(ANNOTATION) {
        let path = path.as_ref().filter(|path| !path.is_empty() && is_primitive(members))?;
        found.push(Parameter { header: header(annotation)?, path: path.to_vec() });
    }
    for (keyword, value) in members.iter().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
        match value {
            Value::Object(properties) if keyword == "properties" => {
                for (name, property) in properties {
                    if let Some(path) = &mut path {
                        path.push(name.clone());
                    }
                    walk(property, path.as_deref_mut(), depth + 1, found)?;
                    if let Some(path) = &mut path {
                        path.pop();
                    }
                }
            }
            value => walk(value, None, depth + 1, found)?,
        }
    }
    Some(())
}

/// Parses a header name: `HeaderName` accepts the tokens of RFC 9110, and ignores case.
fn header(annotation: &Value) -> Option<HeaderName> {
    let name = annotation.as_str().filter(|name| !name.is_empty())?;
    HeaderName::try_from(format!("mcp-param-{name}")).ok()
}

/// Whether a schema is a string, an integer or a boolean, possibly with null.
fn is_primitive(schema: &Map<String, Value>) -> bool {
    let primitive = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(primitive) && kinds.iter().all(|kind| primitive(kind) || kind == "null")
        }
        Some(kind) => primitive(kind),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, properties: Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
    }

    fn left(tools: Vec<Value>) -> Vec<String> {
        let mut list = json!({ "tools": tools });
        ToolHeaders::default().learn(&mut list);
        let left = list["tools"].as_array().unwrap().iter();
        left.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Annotated arguments are sent as headers, including nested ones; absent, null and non-primitive values are not.
    #[test]
    fn annotated_arguments_become_headers() {
        let headers = ToolHeaders::default();
        headers.learn(&mut json!({ "tools": [tool("t", json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "deep": { "type": "object", "properties": { "flag": { "type": ["boolean", "null"], "x-mcp-header": "Flag" } } },
            "plain": { "type": "string" },
            "x-mcp-header": { "type": "string", "default": { "x-mcp-header": "" } },
        }))] }));
        let sent = |arguments: Value| {
            let sent = headers.of_call(Some(&json!({ "name": "t", "arguments": arguments })));
            let mut sent: Vec<_> =
                sent.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            sent.sort();
            sent
        };
        assert_eq!(
            sent(json!({ "region": " Hello, 世界", "count": -7, "deep": { "flag": true }, "plain": "p" })),
            ["mcp-param-count: -7", "mcp-param-flag: true", "mcp-param-region: =?base64?IEhlbGxvLCDkuJbnlYw=?="]
        );
        assert!(sent(json!({ "region": null, "count": 1.5, "deep": 1 })).is_empty());
        assert!(sent(json!({ "count": 9_007_199_254_740_992_u64 })).is_empty());
        assert!(headers.of_call(Some(&json!({ "name": "other", "arguments": { "region": "a" } }))).is_empty());
        assert!(headers.of_call(None).is_empty());
    }

    /// A tool with invalid annotations is removed; the others stay.
    #[test]
    fn a_tool_with_invalid_annotations_is_removed() {
        let annotated = |kind: &str, name: &str| json!({ "p": { "type": kind, "x-mcp-header": name } });
        let mut broken: Vec<_> = ["", "a b", "a:b", "ä", "a\r\nb"]
            .into_iter()
            .map(|name| tool(&format!("name {name:?}"), annotated("string", name)))
            .collect();
        for kind in ["object", "array", "null", "number"] {
            broken.push(tool(kind, annotated(kind, "A")));
        }
        let one = json!({ "type": "string", "x-mcp-header": "A" });
        broken.push(tool("twice", json!({ "p": one, "q": { "type": "string", "x-mcp-header": "a" } })));
        broken.push(tool("no text", json!({ "p": { "type": "string", "x-mcp-header": 7 } })));
        broken.push(tool("no type", json!({ "p": { "x-mcp-header": "A" } })));
        for kinds in [&["null"][..], &["string", "object"]] {
            broken.push(tool("kinds", json!({ "p": { "type": kinds, "x-mcp-header": "A" } })));
        }
        broken.push(tool("items", json!({ "p": { "type": "array", "items": one } })));
        broken.push(tool("any of", json!({ "p": { "anyOf": [{ "properties": { "q": one } }] } })));
        broken.push(json!({ "name": "root", "inputSchema": { "type": "string", "x-mcp-header": "A" } }));
        broken.push(json!({ "name": "defs", "inputSchema": { "$defs": { "d": one } } }));
        let mut all = broken;
        all.insert(3, tool("valid", json!({ "p": one })));
        all.push(json!({ "name": "no schema" }));
        assert_eq!(left(all), ["valid", "no schema"]);
    }

    /// The walk through a nested schema is limited in depth.
    #[test]
    fn depth_is_bounded() {
        type Nest = fn(Value) -> Value;
        let nests: [Nest; 3] = [
            |inner| json!({ "properties": { "p": inner } }),
            |inner| json!({ "items": inner }),
            |inner| json!([inner]),
        ];
        for nest in nests {
            for (depth, stays) in [(MAX_DEPTH - 1, true), (MAX_DEPTH, false)] {
                let nested = (0..depth).fold(json!({ "type": "string" }), |inner, _| nest(inner));
                let tools = vec![json!({ "name": "deep", "inputSchema": nested })];
                assert_eq!(!left(tools).is_empty(), stays, "{depth}");
            }
        }
    }

    /// The number of stored tools is limited. A later list replaces the stored definition of a tool.
    #[test]
    fn tools_are_bounded() {
        let headers = ToolHeaders::default();
        let annotated = |name: usize, header: &str| {
            tool(&name.to_string(), json!({ "p": { "type": "string", "x-mcp-header": header } }))
        };
        let tools: Vec<_> = (0..=MAX_TOOLS).map(|name| annotated(name, "Old")).collect();
        headers.learn(&mut json!({ "tools": tools }));
        headers.learn(&mut json!({ "tools": [annotated(0, "New")] }));
        for (name, header) in [(0, Some("mcp-param-new")), (MAX_TOOLS - 1, Some("mcp-param-old")), (MAX_TOOLS, None)] {
            let call = json!({ "name": name.to_string(), "arguments": { "p": "v" } });
            let sent = headers.of_call(Some(&call));
            assert_eq!(sent.keys().next().map(HeaderName::as_str), header, "{name}");
        }
    }
}
