//! The fixed contents of tools, resources and prompts.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResult, GetPromptRequestParams, GetPromptResult,
        ReadResourceResult,
    },
};
use serde_json::{Value, json};

use crate::{McpResult, result};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
/// The time in milliseconds for which a result can be cached.
pub(crate) const TTL: u64 = 60_000;

/// Calls a tool whose content depends only on its arguments. Returns `None` for other tools.
pub(crate) fn tool(request: &CallToolRequestParams) -> McpResult<Option<CallToolResult>> {
    let plain = embedded(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    );
    let data = embedded(
        "test://mixed-content-resource",
        "application/json",
        r#"{"test":"data","value":123}"#,
    );
    let content = match request.name.as_ref() {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([plain]),
        "test_multiple_content_types" => {
            json!([text("Multiple content types test:"), image(), data])
        }
        "greet" => {
            let name = request
                .arguments
                .as_ref()
                .and_then(|arguments| arguments.get("name"));
            json!([text(&format!(
                "Hello, {}!",
                name.and_then(Value::as_str).unwrap_or_default()
            ))])
        }
        "json_schema_2020_12_tool" | "test_x_mcp_header" => json!([text("called")]),
        "test_error_handling" => {
            let content = json!([text("This tool intentionally returns an error for testing")]);
            return result(json!({"content": content, "isError": true})).map(Some);
        }
        _ => return Ok(None),
    };
    result(json!({"content": content})).map(Some)
}

/// Returns the content of a resource.
pub(crate) fn resource(uri: &str) -> McpResult<ReadResourceResult> {
    let template = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, template) {
        ("test://static-text", _) => {
            json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://watched-resource", _) => {
            json!({"mimeType": "text/plain", "text": "Watched resource content"})
        }
        ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": PNG}),
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"mimeType": "application/json", "text": data.to_string()})
        }
        _ => {
            return Err(ErrorData::resource_not_found(
                "Resource not found",
                Some(json!({"uri": uri})),
            ));
        }
    };
    let mut content = content;
    content["uri"] = uri.into();
    result(json!({"contents": [content], "ttlMs": TTL, "cacheScope": "public"}))
}

/// Returns a prompt that needs no input. Other prompts are an error.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> McpResult<GetPromptResult> {
    let argument = |name: &str| {
        let argument = request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name));
        argument
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let content = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let first = argument("arg1");
            let second = argument("arg2");
            vec![text(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri");
            vec![
                embedded(&uri, "text/plain", "Embedded resource content for testing."),
                text("Please process it."),
            ]
        }
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        other => {
            return Err(ErrorData::invalid_params(
                format!("Unknown prompt: {other}"),
                None,
            ));
        }
    };
    let messages: Vec<Value> = content
        .into_iter()
        .map(|content| json!({"role": "user", "content": content}))
        .collect();
    result(json!({"messages": messages}))
}

pub(crate) fn text(content: &str) -> Value {
    json!({"type": "text", "text": content})
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn embedded(uri: &str, mime_type: &str, content: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": content}})
}
