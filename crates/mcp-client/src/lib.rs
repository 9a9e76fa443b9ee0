#![doc = include_str!("../README.md")]

mod client;
mod endpoint;
mod error;
mod http_sse;
mod message_head;
mod message_stream;
mod outgoing;
mod response;
mod retry_after;
mod server_request_handler;
mod session;
mod settings;
pub mod transport;

pub use client::McpClient;
pub use error::{McpError, RpcError};
pub use message_stream::MessageStream;
pub use retry_after::RetryAfter;
pub use server_request_handler::ServerRequestHandler;
pub use settings::McpSettings;
