//! The three tools of the demo server: two that compute, and one that shows the principal.

use portcullis_guard::Principal;
use portcullis_mcp::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::method_error::MethodError;

/// The arguments of the tools that compute.
#[derive(Deserialize)]
struct Operands {
    a: f64,
    b: f64,
}

/// Returns the result of `tools/list`, which is one page. Fails if `params` has a cursor: this
/// server issues none, so it is invalid.
pub(super) fn list(params: &Value) -> Result<Value, MethodError> {
    if !params["cursor"].is_null() {
        return Err(MethodError {
            code: ErrorCode::InvalidParams,
            message: "the cursor is invalid".to_owned(),
        });
    }
    let operands = json!({
        "type": "object",
        "properties": {
            "a": { "type": "number", "description": "The first number." },
            "b": { "type": "number", "description": "The second number." },
        },
        "required": ["a", "b"],
    });
    Ok(json!({ "tools": [
        { "name": "add", "description": "Adds two numbers.", "inputSchema": operands },
        { "name": "multiply", "description": "Multiplies two numbers.", "inputSchema": operands },
        {
            "name": "whoami",
            "description": "Shows the principal that the guard attached to this request.",
            "inputSchema": { "type": "object", "properties": {} },
            "annotations": { "readOnlyHint": true },
        },
    ] }))
}

/// Returns the result of `tools/call`. Invalid arguments are an error of the tool, which a model
/// can correct. Fails if `params` names none of the tools.
pub(super) fn call(params: &Value, principal: Option<&Principal>) -> Result<Value, MethodError> {
    let arguments = &params["arguments"];
    let result = match params["name"].as_str() {
        Some("add") => compute(arguments, |Operands { a, b }| a + b),
        Some("multiply") => compute(arguments, |Operands { a, b }| a * b),
        Some("whoami") => Ok(whoami(principal)),
        name => {
            let message = format!("the demo server has no tool {:?}", name.unwrap_or_default());
            return Err(MethodError {
                code: ErrorCode::InvalidParams,
                message,
            });
        }
    };
    let is_error = result.is_err();
    let text = result.unwrap_or_else(|error| error);
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// Returns the result as text. Returns the text of the error if the arguments are not two numbers.
fn compute(arguments: &Value, operation: fn(Operands) -> f64) -> Result<String, String> {
    // Serde also deserializes an array as a struct.
    if !arguments.is_object() {
        return Err("invalid arguments: they are not an object".to_owned());
    }
    let operands =
        Operands::deserialize(arguments).map_err(|error| format!("invalid arguments: {error}"))?;
    Ok(operation(operands).to_string())
}

fn whoami(principal: Option<&Principal>) -> String {
    let Some(principal) = principal else {
        return "anonymous: authorization is off".to_owned();
    };
    json!({
        "issuer": principal.issuer().as_str(),
        "subject": principal.subject(),
        "client": principal.client(),
        "scopes": principal.scopes().iter().collect::<Vec<_>>(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_compute() {
        for (tool, arguments, text, is_error) in [
            ("add", json!({ "a": 2, "b": 3 }), "5", false),
            ("multiply", json!({ "a": 6, "b": -0.5 }), "-3", false),
            (
                "whoami",
                Value::Null,
                "anonymous: authorization is off",
                false,
            ),
            (
                "add",
                json!({ "a": 2 }),
                "invalid arguments: missing field `b`",
                true,
            ),
            (
                "add",
                json!({ "a": "2", "b": 3 }),
                "invalid arguments: invalid type: string \"2\", expected f64",
                true,
            ),
            (
                "add",
                json!([2, 3]),
                "invalid arguments: they are not an object",
                true,
            ),
            (
                "add",
                Value::Null,
                "invalid arguments: they are not an object",
                true,
            ),
        ] {
            let result = call(&json!({ "name": tool, "arguments": arguments }), None).unwrap();
            assert_eq!(
                (&result["content"][0]["text"], &result["isError"]),
                (&json!(text), &json!(is_error))
            );
        }
    }

    #[test]
    fn the_list_has_one_page() {
        let tools = list(&json!({})).unwrap();
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(3));
        assert_eq!(tools.get("nextCursor"), None);
        assert_eq!(
            list(&json!({ "cursor": "2" })).unwrap_err().code,
            ErrorCode::InvalidParams
        );
    }

    #[test]
    fn other_tools_are_errors() {
        for params in [
            json!({ "name": "divide" }),
            json!({ "name": 7 }),
            Value::Null,
        ] {
            assert_eq!(
                call(&params, None).unwrap_err().code,
                ErrorCode::InvalidParams,
                "{params}"
            );
        }
    }
}
