//! The reserved `_meta` keys of modern requests (2026-07-28, "Per-request protocol fields") and of
//! tasks.

/// The protocol version of a request. Required.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The capabilities of the client. Required.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The name and version of the client. Optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The task that a message belongs to (2025-11-25, "Related Task Metadata"). Optional.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
