//! The authorization code flow: server requirements, the authorization request, and the redirect.

pub(crate) mod code_flow;
pub(crate) mod redirect;
pub(crate) mod request;
pub(crate) mod server;
pub(crate) mod unsupported_server;
