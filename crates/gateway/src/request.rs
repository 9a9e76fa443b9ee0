//! The request to the upstream: the headers that are forwarded, removed and added.

mod client_assertions;
mod forward_headers;
mod forwarded;
mod header_names;
mod identity;
mod rules;

pub(crate) use identity::Identity;
pub use identity::{IdentityHeader, IdentitySource};
pub(crate) use rules::{ForwardingRules, ForwardingSettings, InboundRequest};
