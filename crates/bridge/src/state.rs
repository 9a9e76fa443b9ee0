//! The state of a running bridge, by concern. Nothing here performs I/O.

pub(crate) mod gate;
pub(crate) mod pending_requests;
pub(crate) mod server_stream_state;
pub(crate) mod session;
pub(crate) mod sse_connection;
pub(crate) mod subscriptions;
