//! [`McpSettings`]: the settings of an [`McpClient`](super::client::McpClient).

use std::time::Duration;

use http::HeaderName;
use portcullis_mcp::{Revision, header as names};

/// The settings of an [`McpClient`](crate::McpClient).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpSettings {
    /// The protocol version to request. 2025-11-25 by default, which servers of older versions
    /// answer with their own; 2026-07-28 has no sessions and no fallback.
    pub revision: Revision,
    /// The client's name. `portcullis` by default.
    pub client_name: String,
    /// The client's version. This crate's by default.
    pub client_version: String,
    /// The header for the identifier of a legacy session. `Mcp-Session-Id` by default.
    pub session_header: HeaderName,
    /// The time limit for the head of a response, and for a body that is not a stream. 60 s by
    /// default.
    pub timeout: Duration,
    /// The maximum size of a JSON response and of one event of a stream, decompressed, in bytes. 8
    /// MiB by default.
    pub max_message: usize,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            revision: Revision::V2025_11_25,
            client_name: "portcullis".into(),
            client_version: env!("CARGO_PKG_VERSION").into(),
            session_header: names::SESSION,
            timeout: Duration::from_secs(60),
            max_message: 8 * 1024 * 1024,
        }
    }
}
