//! The requests that only these cases send.

use http::Request;

use crate::{
    configuration::PATH,
    portcullis::{CALL, REVISION},
};

/// A call of the revision without sessions.
const STATELESS_CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":17,"b":25},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;

/// A call without a session.
pub(super) fn stateless_call(token: &str) -> Vec<u8> {
    let headers = format!(
        "Authorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n"
    );
    post(&headers, STATELESS_CALL)
}

/// A call of a client that has no token yet.
pub(super) fn call_without_token() -> Vec<u8> {
    post("", CALL)
}

/// A GET that opens the stream of a session.
pub(super) fn listen(token: &str, session: &str) -> Vec<u8> {
    format!(
        "GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\
         Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {REVISION}\r\n\r\n"
    )
    .into_bytes()
}

/// The head of the call in a session, for HTTP/2.
pub(super) fn http2_call(token: &str, session: &str) -> http::Result<Request<()>> {
    Request::post(format!("http://127.0.0.1{PATH}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("content-length", CALL.len())
        .header("authorization", format!("Bearer {token}"))
        .header("mcp-session-id", session)
        .header("mcp-protocol-version", REVISION)
        .body(())
}

fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
