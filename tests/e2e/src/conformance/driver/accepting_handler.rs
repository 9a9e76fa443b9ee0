//! [`AcceptingHandler`]: responds to elicitation requests of the server.

use portcullis_discovery::BoxFuture;
use portcullis_mcp_client::ServerRequestHandler;
use serde_json::{Map, Value, json};

/// Accepts every elicitation with the defaults of its form.
pub(super) struct AcceptingHandler;

impl ServerRequestHandler for AcceptingHandler {
    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    fn answer<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            (method == "elicitation/create")
                .then(|| json!({ "action": "accept", "content": filled(params) }))
        })
    }
}

fn filled(params: &Value) -> Map<String, Value> {
    let fields = params["requestedSchema"]["properties"].as_object();
    let filled = fields.into_iter().flatten().filter_map(|(name, field)| {
        let accepted = (field["type"] == "boolean").then_some(Value::Bool(true));
        Some((name.clone(), field.get("default").cloned().or(accepted)?))
    });
    filled.collect()
}
