//! The HTTP transports: Streamable HTTP with sessions, Streamable HTTP without sessions, and HTTP with SSE.

pub(crate) mod event_stream;
pub(crate) mod http_sse;
pub(crate) mod legacy;
pub(crate) mod modern;
