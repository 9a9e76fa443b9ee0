//! The HTTP upstream service.

mod deadlines;
mod end_session;
mod future;
mod service;
mod state;

pub use future::UpstreamFuture;
pub use service::HttpUpstream;

#[cfg(test)]
mod tests;
