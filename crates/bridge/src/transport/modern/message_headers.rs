use http::HeaderMap;

use crate::message::Params;
use portcullis_mcp_client::{
    McpError,
    transport::{ToolHeaders, mirrored_headers},
};

/// Returns the headers that repeat parts of a message: version, method and name, and the annotated
/// arguments of a tool call. Parameters of the wrong type are not repeated, because the server
/// rejects them. Fails as [`mirrored_headers`] does.
pub(super) fn message_headers(
    params: Params<'_>,
    method: &str,
    version: &str,
    tools: &ToolHeaders,
) -> Result<HeaderMap, McpError> {
    let mut headers = mirrored_headers(version, method, params.mirrored_name(method).as_deref())?;
    if method == "tools/call" {
        headers.extend(
            params
                .raw()
                .map(|params| tools.of_call(params))
                .unwrap_or_default(),
        );
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;
    use crate::message::Message;

    /// The headers of a message, as `name: value`, without the version and the method.
    fn headers(method: &str, params: Value) -> Vec<String> {
        let tools = ToolHeaders::default();
        let region = json!({ "type": "string", "x-mcp-header": "Region" });
        let tool = json!({ "name": "add", "inputSchema": { "properties": { "region": region } } });
        let list = to_raw_value(&json!({ "tools": [tool] })).unwrap();
        tools.learn_and_filter(&list, &mut String::new()).unwrap();
        let text =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message = Message::parse(text.into()).unwrap();
        let headers = message_headers(message.params(), method, "2026-07-28", &tools).unwrap();
        let shown = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let mut shown: Vec<_> = shown
            .filter(|line| !line.starts_with("mcp-method") && !line.starts_with("mcp-protocol"))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn only_a_method_with_a_target_repeats_its_name() {
        for (method, params, expected) in [
            (
                "tools/call",
                json!({ "name": "sub" }),
                Some("mcp-name: sub"),
            ),
            ("prompts/get", json!({ "name": "p" }), Some("mcp-name: p")),
            (
                "resources/read",
                json!({ "uri": "file:///a", "name": "b" }),
                Some("mcp-name: file:///a"),
            ),
            (
                "resources/list",
                json!({ "uri": "file:///a", "name": "b" }),
                None,
            ),
            ("tools/call", json!({ "name": 7 }), None),
            ("tools/call", json!([{ "name": "sub" }]), None),
        ] {
            assert_eq!(
                headers(method, params),
                Vec::from_iter(expected.map(str::to_owned)),
                "{method}"
            );
        }
    }

    #[test]
    fn only_a_call_repeats_arguments() {
        let params = json!({ "name": "add", "arguments": { "region": "eu", "other": "x" } });
        assert_eq!(
            headers("tools/call", params.clone()),
            ["mcp-name: add", "mcp-param-region: eu"]
        );
        assert_eq!(headers("prompts/get", params), ["mcp-name: add"]);
    }
}
