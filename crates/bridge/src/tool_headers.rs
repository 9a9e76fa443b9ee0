//! [`ToolHeaders`]: the tool arguments that are also sent as headers.

mod annotations;

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use http::{HeaderMap, HeaderValue};
use portcullis_mcp::encode_mirrored;
use portcullis_metadata::EscapedText;
use serde_json::Value;

use self::annotations::{AnnotatedParameter, annotated_parameters};

/// The arguments of each tool that are also sent as headers (2026-07-28, "Custom Headers from Tool Parameters").
#[derive(Default)]
pub(crate) struct ToolHeaders(RwLock<HashMap<String, Vec<AnnotatedParameter>>>);

/// The maximum number of tools that are stored; the arguments of others are sent only in the body.
const MAX_TOOLS: usize = 1000;
/// The maximum number of characters of a tool's name that are logged.
const MAX_SHOWN: usize = 200;
/// The largest integer that every JSON parser represents exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

impl ToolHeaders {
    /// Stores the tools of a list, and removes tools with invalid annotations from it. Returns whether it removed any.
    pub(crate) fn learn_and_filter(&self, list: &mut Value) -> bool {
        let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) else { return false };
        let before = tools.len();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            match annotated_parameters(tool.get("inputSchema").unwrap_or(&Value::Null)) {
                Ok(parameters) => {
                    if known.len() < MAX_TOOLS || known.contains_key(name) {
                        known.insert(name.to_owned(), parameters);
                    }
                    true
                }
                Err(error) => {
                    tracing::warn!(tool = %EscapedText::first(name, MAX_SHOWN), "a tool is removed from the list: {error} (x-mcp-header)");
                    known.remove(name);
                    false
                }
            }
        });
        tools.len() < before
    }

    /// Returns the headers for the parameters of a tool call. There are none for a tool that is not stored, and for
    /// arguments that are absent or not primitive.
    pub(crate) fn of_call(&self, params: Option<&Value>) -> HeaderMap {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let called = params.and_then(|params| known.get(params.get("name")?.as_str()?));
        let arguments = params.and_then(|params| params.get("arguments"));
        let parameters = called.into_iter().flatten();
        parameters
            .filter_map(|parameter| {
                let value = parameter.path.iter().try_fold(arguments?, |value, name| value.get(name))?;
                Some((parameter.header.clone(), header_value(value)?))
            })
            .collect()
    }
}

/// The header value of an argument. `None` for values that cannot be headers.
fn header_value(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => Some(encode_mirrored(text)),
        Value::Bool(flag) => Some(encode_mirrored(if *flag { "true" } else { "false" })),
        Value::Number(number) => {
            let magnitude = number.as_i64().map(i64::unsigned_abs).or(number.as_u64())?;
            (magnitude <= MAX_INTEGER).then(|| encode_mirrored(&number.to_string()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, properties: Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
    }

    /// Annotated arguments are sent as headers, including nested ones; absent, null and non-primitive values are not.
    #[test]
    fn annotated_arguments_become_headers() {
        let headers = ToolHeaders::default();
        headers.learn_and_filter(&mut json!({ "tools": [tool("t", json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "deep": { "type": "object", "properties": { "flag": { "type": ["boolean", "null"], "x-mcp-header": "Flag" } } },
            "plain": { "type": "string" },
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
        let annotated =
            |name: &str, header: &str| tool(name, json!({ "p": { "type": "string", "x-mcp-header": header } }));
        let headers = ToolHeaders::default();
        headers.learn_and_filter(&mut json!({ "tools": [annotated("changed", "A")] }));
        let mut list = json!({ "tools": [
            annotated("valid", "A"),
            annotated("broken", "a b"),
            annotated("changed", ""),
            { "name": "no schema" },
        ] });
        headers.learn_and_filter(&mut list);
        let left: Vec<_> =
            list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(left, ["valid", "no schema"]);

        let call = json!({ "name": "changed", "arguments": { "p": "v" } });
        assert!(headers.of_call(Some(&call)).is_empty(), "its earlier definition is forgotten");
    }

    /// The number of stored tools is limited. A later list replaces the stored definition of a tool.
    #[test]
    fn tools_are_bounded() {
        let headers = ToolHeaders::default();
        let annotated = |name: usize, header: &str| {
            tool(&name.to_string(), json!({ "p": { "type": "string", "x-mcp-header": header } }))
        };
        let tools: Vec<_> = (0..=MAX_TOOLS).map(|name| annotated(name, "Old")).collect();
        headers.learn_and_filter(&mut json!({ "tools": tools }));
        headers.learn_and_filter(&mut json!({ "tools": [annotated(0, "New")] }));
        for (name, header) in [(0, Some("mcp-param-new")), (MAX_TOOLS - 1, Some("mcp-param-old")), (MAX_TOOLS, None)] {
            let call = json!({ "name": name.to_string(), "arguments": { "p": "v" } });
            let sent = headers.of_call(Some(&call));
            assert_eq!(sent.keys().next().map(HeaderName::as_str), header, "{name}");
        }
    }
}
