//! MCP messages and the requests that carry them.

use serde_json::{Value, json};

use crate::Request;

/// An `initialize` request of revision 2025-11-25.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"scenario","version":"1"}}}"#;

/// Returns a JSON-RPC request of the revisions with sessions.
pub fn call_message(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Returns a JSON-RPC request of revision 2026-07-28.
pub fn modern_call_message(id: u64, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "scenario", "version": "1" },
    });
    call_message(id, method, &params)
}

/// Returns a POST of a [`modern_call_message`] with the headers that repeat its members.
pub fn modern_request(target: &str, method: &str, params: &Value) -> Request {
    Request::post(target, modern_call_message(1, method, params))
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
}
