//! Who answers when a server asks for input.

use portcullis_bridge::ServerRequestHandler;
use portcullis_discovery::BoxFuture;
use serde_json::{Map, Value, json};

/// Agrees to everything, with the defaults of each form.
pub(super) struct Agreeable;

impl ServerRequestHandler for Agreeable {
    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    fn answer<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            (method == "elicitation/create").then(|| json!({ "action": "accept", "content": filled(params) }))
        })
    }
}

fn filled(params: &Value) -> Map<String, Value> {
    let fields = params["requestedSchema"]["properties"].as_object();
    let filled = fields.into_iter().flatten().filter_map(|(name, field)| {
        let agreed = (field["type"] == "boolean").then_some(Value::Bool(true));
        Some((name.clone(), field.get("default").cloned().or(agreed)?))
    });
    filled.collect()
}
