//! Connects stdio MCP clients to remote MCP servers that are protected with OAuth 2.1, and makes
//! MCP calls.
//!
//! - [`Bridge`] forwards JSON-RPC messages between standard input and output and one HTTP endpoint.
//! - [`McpClient`] makes MCP calls over Streamable HTTP.
//!
//! Both obtain their access tokens from a [`TokenManager`](portcullis_client::TokenManager).

mod context;
mod dispatcher;
mod endpoint;
mod error;
mod error_response;
mod forwarding;
mod http_sse;
mod json;
mod mcp_client;
mod message;
mod message_budget;
mod mirrored_headers;
mod outgoing_queue;
mod resource_fetch;
mod response;
mod resumption;
mod retry_after;
mod server_messages;
mod server_stream;
mod session_renewal;
mod session_requests;
mod settings;
mod state;
mod stdio;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool_headers;
mod tool_list_page;
mod transport;

pub use error::{McpError, MessageTooLarge, RpcError};
pub use forwarding::Bridge;
pub use mcp_client::{McpClient, McpSettings, MessageStream, ServerRequestHandler};
pub use retry_after::RetryAfter;
pub use settings::{BridgeSettings, BridgeTransport};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
