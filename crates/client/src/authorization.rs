//! The authorization code flow: the requirements for the server, and the authorization request.

pub(crate) mod code_flow;
pub(crate) mod request;
