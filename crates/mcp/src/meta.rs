//! The reserved `params._meta` keys that modern requests carry (2026-07-28, "Per-request protocol fields").

/// The revision that a request follows. Required.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What the client can do. Required.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Name and version of the client. Optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
