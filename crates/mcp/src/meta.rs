//! The reserved `_meta` keys that are read: those of modern requests (2026-07-28, "Per-request protocol fields") and that of tasks.

/// The revision that a request follows. Required.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What the client can do. Required.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Name and version of the client. Optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The task that a message belongs to (2025-11-25, "Related Task Metadata"). Optional.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
