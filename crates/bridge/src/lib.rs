//! Connects stdio MCP clients to remote MCP servers that are protected with OAuth 2.1, and makes MCP calls.
//!
//! - [`Bridge`] carries JSON-RPC messages between standard input and output and one HTTP endpoint.
//! - [`McpClient`] makes MCP calls over Streamable HTTP.
//!
//! Both obtain their access tokens from a [`TokenManager`](portcullis_client::TokenManager).

mod bridge;
mod mcp;
#[cfg(test)]
mod testing;

pub use bridge::{Bridge, BridgeSettings, BridgeTransport};
pub use mcp::{McpClient, McpError, McpSettings, MessageStream, RpcError, ServerRequestHandler};
