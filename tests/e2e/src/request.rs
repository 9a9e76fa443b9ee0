//! Requests of revision 2026-07-28, which need no session.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue, Method, header};
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use serde_json::{Value, json};

use super::expect;

const REVISION: &str = "2026-07-28";

pub(crate) fn tool_list(address: SocketAddr, token: &str) -> anyhow::Result<FetchRequest> {
    message(address, token, "tools/list", None)
}

/// Returns a `tools/call` request of a tool with two numbers.
pub(crate) fn tool_call(
    address: SocketAddr,
    token: &str,
    tool: &str,
) -> anyhow::Result<FetchRequest> {
    message(address, token, "tools/call", Some(tool))
}

/// Returns the result of a response, in JSON or in the last event of a stream.
pub(crate) fn result(response: &FetchResponse) -> anyhow::Result<Value> {
    let text = std::str::from_utf8(&response.body)?;
    let event = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data:"));
    let message: Value = serde_json::from_str(event.unwrap_or(text))?;
    expect::that(
        message["result"].is_object(),
        "the response",
        "a result",
        &message,
    )?;
    Ok(message["result"].clone())
}

/// A request of 2026-07-28, which calls a tool if one is given.
fn message(
    address: SocketAddr,
    token: &str,
    method: &str,
    tool: Option<&str>,
) -> anyhow::Result<FetchRequest> {
    let mut params = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "e2e", "version": "1" },
    }});
    let mut request = FetchRequest::new(
        Method::POST,
        format!("http://{address}/mcp").parse()?,
        UrlPolicy::Operator,
    )
    .header(
        header::ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    )
    .header(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )
    .header(
        header::AUTHORIZATION,
        HeaderValue::from_str(&format!("Bearer {token}"))?,
    )
    .header(
        HeaderName::from_static("mcp-protocol-version"),
        HeaderValue::from_static(REVISION),
    )
    .header(
        HeaderName::from_static("mcp-method"),
        HeaderValue::from_str(method)?,
    );
    if let Some(tool) = tool {
        params["name"] = tool.into();
        params["arguments"] = json!({ "a": 2, "b": 3 });
        request = request.header(
            HeaderName::from_static("mcp-name"),
            HeaderValue::from_str(tool)?,
        );
    }
    let message: Value = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    request.body = serde_json::to_vec(&message)?.into();
    Ok(request)
}
