//! The parts of a client's side of the MCP transports over HTTP, from which [`McpClient`] is made,
//! for programs that forward messages instead of making calls.
//!
//! [`McpClient`]: crate::McpClient

mod http_sse;
pub mod json;
mod message_budget;
mod mirrored_headers;
mod resource_fetch;
mod response;
mod resumption;
mod tool_headers;
mod tool_list_page;

pub use http_sse::{SseStream, suggests_http_sse};
pub use message_budget::{MessageBudget, Reservation};
pub use mirrored_headers::mirrored_headers;
pub use resource_fetch::ResourceFetch;
pub use response::{
    BodyLimits, MAX_ERROR_SIZE, MediaType, insufficient_scope, is_event_stream, is_temporary,
    is_unknown_session, read_body,
};
pub use resumption::{MAX_RESUME_AFTER, MAX_RESUMES, ResumeAttempts, ResumePosition, backoff};
pub use tool_headers::ToolHeaders;
pub use tool_list_page::{MAX_PAGES, next_cursor};
