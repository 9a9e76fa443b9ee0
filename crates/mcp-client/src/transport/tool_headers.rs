//! [`ToolHeaders`]: the tool arguments that are also sent as headers.

mod annotations;
mod known_tools;
mod list_filter;

use http::{HeaderMap, HeaderValue};
use parking_lot::RwLock;
use portcullis_mcp::encode_mirrored;
use portcullis_metadata::EscapedText;
use serde::Deserialize;
use serde_json::{Number, value::RawValue};

use self::{
    annotations::{AnnotationError, annotated_parameters},
    known_tools::KnownTools,
    list_filter::filter_array,
};
use super::json;
use crate::error::McpError;

/// The arguments of each tool that are also sent as headers (2026-07-28, "Custom Headers from Tool
/// Parameters").
#[derive(Default)]
pub struct ToolHeaders(RwLock<KnownTools>);

/// The maximum length of a tool's name, in bytes of JSON text.
pub(crate) const MAX_TOOL_NAME: usize = 64 * 1024;
/// The maximum number of characters of a tool's name that are logged.
const MAX_SHOWN: usize = 200;
/// The maximum number of removed tools of one list that are logged.
const MAX_LOGGED: usize = 20;
/// The largest integer that every JSON parser represents exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The member of a list that is filtered.
#[derive(Deserialize)]
struct ToolList<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

/// The members of a tool that are used.
#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
}

/// The members of a call's parameters that are used.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ToolHeaders {
    /// Stores the tools of a list. If tools have invalid annotations, appends the list without them
    /// to `filtered` and returns true. Everything else in the list stays as it is.
    ///
    /// # Errors
    /// Returns [`McpError::InvalidResponse`] when it is not clear which list the client would read,
    /// because `tools` is duplicated.
    pub fn learn_and_filter(
        &self,
        list: &RawValue,
        filtered: &mut String,
    ) -> Result<bool, McpError> {
        if !list.get().starts_with('{') {
            return Ok(false);
        }
        let ToolList { tools } = json::object(list).ok_or(McpError::InvalidResponse)?;
        let Some(tools) = tools else { return Ok(false) };
        let mut removed = 0_usize;
        let is_filtered = filter_array(list, tools, filtered, |tool| {
            let Err((name, error)) = self.learn(tool) else {
                return true;
            };
            removed += 1;
            if removed <= MAX_LOGGED {
                let name = name.unwrap_or_default();
                tracing::warn!(tool = %EscapedText::first(&name, MAX_SHOWN), "a tool is removed from the list: {error} (x-mcp-header)");
            }
            false
        });
        if removed > MAX_LOGGED {
            tracing::warn!(
                tools = removed - MAX_LOGGED,
                "more tools are removed from the list (x-mcp-header)"
            );
        }
        Ok(is_filtered)
    }

    /// Stores the annotated parameters of a tool. Fails when they are invalid, with the tool's
    /// name. An earlier definition is then forgotten.
    fn learn(&self, tool: &RawValue) -> Result<(), (Option<String>, AnnotationError)> {
        if !tool.get().starts_with('{') {
            return Ok(());
        }
        let Tool { name, input_schema } =
            json::object(tool).ok_or((None, AnnotationError::Unreadable))?;
        let name = name.filter(|name| name.get().starts_with('"'));
        let name = name.map(|name| {
            json::string(name, MAX_TOOL_NAME).ok_or((None, AnnotationError::Unreadable))
        });
        let name = name.transpose()?;
        let parameters = input_schema.map_or(Ok(Vec::new()), annotated_parameters);
        let mut known = self.0.write();
        if let Some(name) = &name {
            known.remove(name);
        }
        match (parameters, name) {
            (Ok(parameters), Some(name)) => known.insert(name, parameters),
            (Ok(_), None) => {}
            (Err(error), name) => return Err((name, error)),
        }
        Ok(())
    }

    /// Returns the headers for the parameters of a tool call. There are none for a tool that is not
    /// stored, and for arguments that are absent or not primitive.
    pub fn of_call(&self, params: &RawValue) -> HeaderMap {
        let Some(Call {
            name: Some(name),
            arguments: Some(arguments),
        }) = json::object(params)
        else {
            return HeaderMap::new();
        };
        let Some(name) = json::string(name, MAX_TOOL_NAME) else {
            return HeaderMap::new();
        };
        let parameters = self.0.read().parameters(&name);
        let headers = parameters.into_iter().filter_map(|parameter| {
            let value = parameter
                .path
                .iter()
                .try_fold(arguments, |value, name| json::member(value, name))?;
            Some((parameter.header, header_value(value)?))
        });
        headers.collect()
    }
}

/// The header value of an argument. `None` for values that cannot be headers.
fn header_value(value: &RawValue) -> Option<HeaderValue> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'"' => Some(encode_mirrored(&serde_json::from_str::<String>(text).ok()?)),
        b't' | b'f' => Some(encode_mirrored(text)),
        b'-' | b'0'..=b'9' => {
            let number: Number = serde_json::from_str(text).ok()?;
            let magnitude = number.as_i64().map(i64::unsigned_abs).or(number.as_u64())?;
            (magnitude <= MAX_INTEGER).then(|| encode_mirrored(&number.to_string()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn tool(name: &str, properties: Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
    }

    /// Stores the tools of a list. Returns the list without invalid tools, if there are any.
    fn learn(headers: &ToolHeaders, list: &Value) -> Option<Value> {
        let mut filtered = String::new();
        let is_filtered = headers
            .learn_and_filter(&to_raw_value(list).unwrap(), &mut filtered)
            .unwrap();
        is_filtered.then(|| serde_json::from_str(&filtered).unwrap())
    }

    fn of_call(headers: &ToolHeaders, params: &Value) -> HeaderMap {
        headers.of_call(&to_raw_value(params).unwrap())
    }

    /// Annotated arguments are sent as headers, including nested ones; absent, null and
    /// non-primitive values are not.
    #[test]
    fn annotated_arguments_become_headers() {
        let headers = ToolHeaders::default();
        learn(
            &headers,
            &json!({ "tools": [tool("t", json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "deep": { "type": "object", "properties": { "flag": { "type": ["boolean", "null"], "x-mcp-header": "Flag" } } },
            "plain": { "type": "string" },
        }))] }),
        );
        let sent = |arguments: Value| {
            let sent = of_call(&headers, &json!({ "name": "t", "arguments": arguments }));
            let mut sent: Vec<_> = sent
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            sent.sort();
            sent
        };
        assert_eq!(
            sent(
                json!({ "region": " Hello, 世界", "count": -7, "deep": { "flag": true }, "plain": "p" })
            ),
            [
                "mcp-param-count: -7",
                "mcp-param-flag: true",
                "mcp-param-region: =?base64?IEhlbGxvLCDkuJbnlYw=?="
            ]
        );
        assert!(sent(json!({ "region": null, "count": 1.5, "deep": 1 })).is_empty());
        assert!(sent(json!({ "count": 9_007_199_254_740_992_u64 })).is_empty());
        assert!(
            of_call(
                &headers,
                &json!({ "name": "other", "arguments": { "region": "a" } })
            )
            .is_empty()
        );
        assert!(of_call(&headers, &json!(["t"])).is_empty());
    }

    /// A tool with invalid annotations is removed; the others stay.
    #[test]
    fn a_tool_with_invalid_annotations_is_removed() {
        let annotated = |name: &str, header: &str| {
            tool(
                name,
                json!({ "p": { "type": "string", "x-mcp-header": header } }),
            )
        };
        let headers = ToolHeaders::default();
        learn(&headers, &json!({ "tools": [annotated("changed", "A")] }));
        let list = json!({ "tools": [
            annotated("valid", "A"),
            annotated("broken", "a b"),
            annotated("changed", ""),
            { "name": "no schema" },
        ] });
        let list = learn(&headers, &list).unwrap();
        let left: Vec<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(left, ["valid", "no schema"]);

        let call = json!({ "name": "changed", "arguments": { "p": "v" } });
        assert!(
            of_call(&headers, &call).is_empty(),
            "its earlier definition is forgotten"
        );
    }

    /// The number of stored tools is limited. A later list replaces the stored definition of a
    /// tool.
    #[test]
    fn tools_are_bounded() {
        let headers = ToolHeaders::default();
        let annotated = |name: usize, header: &str| {
            tool(
                &name.to_string(),
                json!({ "p": { "type": "string", "x-mcp-header": header } }),
            )
        };
        const MAX_TOOLS: usize = known_tools::MAX_TOOLS;
        let tools: Vec<_> = (0..=MAX_TOOLS).map(|name| annotated(name, "Old")).collect();
        learn(&headers, &json!({ "tools": tools }));
        learn(&headers, &json!({ "tools": [annotated(0, "New")] }));
        for (name, header) in [
            (0, Some("mcp-param-new")),
            (MAX_TOOLS - 1, Some("mcp-param-old")),
            (MAX_TOOLS, None),
        ] {
            let call = json!({ "name": name.to_string(), "arguments": { "p": "v" } });
            let sent = of_call(&headers, &call);
            assert_eq!(sent.keys().next().map(HeaderName::as_str), header, "{name}");
        }
    }

    /// A tool that cannot be read is removed, and an ambiguous list is rejected. What is not used
    /// can be any JSON.
    #[test]
    fn unclear_definitions_are_removed() {
        let headers = ToolHeaders::default();
        let filtered = |text: &str| {
            let mut filtered = "start ".to_owned();
            let list: &RawValue = serde_json::from_str(text).unwrap();
            headers
                .learn_and_filter(list, &mut filtered)
                .map(|is_filtered| (is_filtered, filtered))
        };
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for (list, expected) in [
            (
                format!(r#"{{"x":{deep},"tools":[{{"name":"a","name":"b"}}, {{"x":1e400}} ]}}"#),
                Some(format!(r#"start {{"x":{deep},"tools":[{{"x":1e400}}]}}"#)),
            ),
            (
                format!(r#"{{"tools":[ 1, {{"inputSchema":{deep}}},2]}}"#),
                Some(r#"start {"tools":[ 1,2]}"#.to_owned()),
            ),
            (
                r#"{"tools":[{"name":"\ud800"}]}"#.to_owned(),
                Some(r#"start {"tools":[]}"#.to_owned()),
            ),
            (
                format!(r#"{{"tools":[{{"name":"a","inputSchema":{{"default":{deep}}}}}]}}"#),
                None,
            ),
            (r#"{"tools":{"a":1}}"#.to_owned(), None),
            ("[[]]".to_owned(), None),
        ] {
            let (is_filtered, text) = filtered(&list).unwrap();
            assert_eq!(is_filtered, expected.is_some());
            assert_eq!(text, expected.unwrap_or_else(|| "start ".to_owned()));
        }
        assert_eq!(
            filtered(r#"{"tools":[],"tools":[]}"#).unwrap_err().code(),
            "mcp.answer"
        );
    }
}
