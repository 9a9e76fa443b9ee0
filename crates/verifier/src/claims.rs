//! The claims of access tokens and of introspection responses.

mod json_claims;
pub(crate) mod scopes;
pub(crate) mod token_type;
pub(crate) mod validation;

pub(crate) use json_claims::JsonClaims;
