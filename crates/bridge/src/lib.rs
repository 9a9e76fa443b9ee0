//! Connects stdio MCP clients to remote MCP servers that are protected with OAuth 2.1, and makes
//! MCP calls.
//!
//! - [`Bridge`] forwards JSON-RPC messages between standard input and output and one HTTP endpoint.
//! - [`McpClient`] makes MCP calls over Streamable HTTP.
//!
//! Both obtain their access tokens from a [`TokenManager`](portcullis_client::TokenManager).

mod bridge;
mod error;
mod http_sse;
mod json;
mod mcp_client;
mod message_budget;
mod mirrored_headers;
mod resource_fetch;
mod response;
mod resumption;
mod retry_after;
#[cfg(test)]
mod testing;
mod tool_headers;
mod tool_list_page;

pub use bridge::{Bridge, BridgeSettings, BridgeTransport};
pub use error::{McpError, MessageTooLarge, RpcError};
pub use mcp_client::{McpClient, McpSettings, MessageStream, ServerRequestHandler};
pub use retry_after::RetryAfter;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
