//! The HTTP transports. Each sends the client's messages, and forwards the responses.

/// The responses of both Streamable HTTP transports.
pub(super) mod event_stream;
/// HTTP with SSE, of 2024-11-05.
pub(super) mod http_sse;
/// Streamable HTTP with sessions, of the legacy revisions 2025-03-26 to 2025-11-25.
pub(super) mod legacy;
/// Streamable HTTP without sessions, of the modern revision 2026-07-28.
pub(super) mod modern;
