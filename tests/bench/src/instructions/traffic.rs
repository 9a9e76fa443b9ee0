//! The requests of a case, one after the other on one connection.

use std::net::SocketAddr;

use anyhow::ensure;
use portcullis_scenarios::Http2;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    case::Case,
    upstream::{EVENT_END, Upstream},
};
use crate::{
    configuration::PATH,
    http::Connection,
    issuer::BenchIssuer,
    portcullis::{self, CALL, REVISION, tool_call},
};

/// A call of the revision without sessions.
const STATELESS_CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":17,"b":25},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;

/// Sends this number of requests and reads their responses.
///
/// # Errors
/// Fails at the first response with another status than the case has.
pub(super) async fn send(
    case: Case,
    address: SocketAddr,
    issuer: &BenchIssuer,
    upstream: &Upstream,
    requests: u32,
) -> anyhow::Result<()> {
    let token = issuer.sign(None);
    let session = portcullis::open_session(address, &token).await?;
    match case {
        Case::CachedPost | Case::AuditedPost => repeat(address, &tool_call(&token, &session), requests, 200).await,
        Case::Stateless => repeat(address, &stateless_call(&token), requests, 200).await,
        Case::Refused => repeat(address, &call_without_token(), requests, 401).await,
        Case::UncachedEs256 | Case::UncachedRs256 => {
            // Signing does not delay the server: it is idle meanwhile.
            let mut connection = Connection::open(address).await?;
            for number in 0..requests {
                let request = tool_call(&issuer.sign(Some(number)), &session);
                connection.send(&request).await?.ok()?;
            }
            Ok(())
        }
        Case::StreamMessage => listen(address, &token, &session, upstream, requests).await,
        Case::Http2 => {
            let mut connection = Http2::connect(address).await;
            for _ in 0..requests {
                let request = Http2::post(PATH)
                    .header("authorization", format!("Bearer {token}"))
                    .header("mcp-session-id", &session)
                    .header("mcp-protocol-version", REVISION);
                let response = connection.send(request, CALL).await?;
                ensure!(response.status == 200, "a response over HTTP/2 is {}", response.status);
            }
            Ok(())
        }
    }
}

/// Sends the same request again and again.
async fn repeat(address: SocketAddr, request: &[u8], requests: u32, status: u16) -> anyhow::Result<()> {
    let mut connection = Connection::open(address).await?;
    for _ in 0..requests {
        let received = connection.send(request).await?.status;
        ensure!(received == status, "a response is {received}, not {status}");
    }
    Ok(())
}

/// Opens a stream and reads this number of messages from it. Each is sent after the one before it has arrived.
async fn listen(
    address: SocketAddr,
    token: &str,
    session: &str,
    upstream: &Upstream,
    messages: u32,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\
         Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {REVISION}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut received = Vec::with_capacity(1024);
    while !received.ends_with(b"\r\n\r\n") {
        ensure!(stream.read_buf(&mut received).await? > 0, "the stream did not open");
    }
    ensure!(received.starts_with(b"HTTP/1.1 200 "), "the stream was rejected: {}", received.escape_ascii());
    for _ in 0..messages {
        received.clear();
        upstream.send_event();
        while !received.ends_with(EVENT_END) {
            ensure!(stream.read_buf(&mut received).await? > 0, "the stream ended");
        }
    }
    Ok(())
}

/// A call without a session.
fn stateless_call(token: &str) -> Vec<u8> {
    let length = STATELESS_CALL.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n\
         Content-Length: {length}\r\n\r\n{STATELESS_CALL}"
    )
    .into_bytes()
}

/// A call of a client that has no token yet.
fn call_without_token() -> Vec<u8> {
    let length = CALL.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{CALL}"
    )
    .into_bytes()
}
