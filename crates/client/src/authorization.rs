//! The authorization code flow: the authorization request, and the redirect.

pub(crate) mod code_flow;
pub(crate) mod redirect;
pub(crate) mod request;
