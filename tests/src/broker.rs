//! A server with a broker, an identity provider, a browser and a client.

mod browser;
mod client;
mod front;
mod identity_provider;
mod mcp;
mod replica;
mod server;

pub use browser::Browser;
pub use client::{BrokerClient, TokenPair};
pub use identity_provider::{BrokerIdp, ProviderKind};
pub use mcp::McpSession;
pub use server::{BrokerServer, BrokerSettings};
