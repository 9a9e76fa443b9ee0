//! Lists of tools, resources, templates and prompts.

use rmcp::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
};
use serde_json::{Value, json};

use crate::{McpResult, fixed::TTL, result};

/// Tools without arguments.
const PLAIN: [&str; 24] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_reconnection",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
];

/// All tools with their schemas.
pub(crate) fn tools() -> McpResult<ListToolsResult> {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let tool = |name: &str, schema: Value| json!({"name": name, "description": format!("The tool {name}"), "inputSchema": schema});
    let mut tools: Vec<Value> = PLAIN
        .iter()
        .map(|name| tool(name, json!({"type": "object", "properties": {}})))
        .collect();
    tools.push(tool(
        "test_sampling",
        object(json!({"prompt": {"type": "string"}}), json!(["prompt"])),
    ));
    tools.push(tool(
        "test_elicitation",
        object(json!({"message": {"type": "string"}}), json!(["message"])),
    ));
    let region = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
    tools.push(tool("test_x_mcp_header", object(region, json!(["region"]))));
    let texts = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), json!({"type": "string"})))
            .collect::<Value>()
    };
    tools.push(tool("greet", object(texts(&["name"]), json!(["name"]))));
    let slow = json!({"seconds": {"type": "number"}, "label": {"type": "string"}});
    tools.push(tool("slow_compute", object(slow, json!([]))));
    tools.push(tool(
        "confirm_delete",
        object(texts(&["filename"]), json!([])),
    ));
    for name in [
        "failing_job",
        "protocol_error_job",
        "multi_input",
        "test_tool_with_task",
    ] {
        tools.push(tool(name, object(json!({}), json!([]))));
    }
    tools.push(tool("json_schema_2020_12_tool", schema_2020_12()));
    result(json!({"tools": tools, "ttlMs": TTL, "cacheScope": "public"}))
}

/// A schema with keywords of JSON Schema 2020-12.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) fn resources() -> McpResult<ListResourcesResult> {
    let resource = |name: &str, mime_type: &str| {
        let uri = format!("test://{name}");
        let description = format!("The resource {name}");
        json!({"uri": uri, "name": name, "description": description, "mimeType": mime_type})
    };
    let resources = [
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ];
    result(json!({"resources": resources, "ttlMs": TTL, "cacheScope": "public"}))
}

/// The only resource template.
pub(crate) fn templates() -> McpResult<ListResourceTemplatesResult> {
    let template = json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "A resource for each identifier",
        "mimeType": "application/json",
    });
    result(json!({"resourceTemplates": [template], "ttlMs": TTL, "cacheScope": "public"}))
}

pub(crate) fn prompts() -> McpResult<ListPromptsResult> {
    let prompt = |name: &str, arguments: &[&str]| {
        let argument = |name: &&str| json!({"name": name, "description": format!("The argument {name}"), "required": true});
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({"name": name, "description": format!("The prompt {name}"), "arguments": arguments})
    };
    let prompts = [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ];
    result(json!({"prompts": prompts, "ttlMs": TTL, "cacheScope": "public"}))
}
