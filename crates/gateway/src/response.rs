//! The response to the client.

mod body;
mod failure;
mod headers;

pub use body::UpstreamBody;
pub use failure::REASON_CODES;
pub(crate) use failure::UpstreamFailure;
pub(crate) use headers::{check_status, remove_headers};
