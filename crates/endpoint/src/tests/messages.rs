//! The messages that the tests send.

use serde_json::{Value, json};

/// An `initialize` message.
pub(super) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}})
}

/// A request with the id 7.
pub(super) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// The same as a message of 2026-07-28.
pub(super) fn modern(method: &str, params: Value) -> Value {
    let mut message = request(method, params);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}
