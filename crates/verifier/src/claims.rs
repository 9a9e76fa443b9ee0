//! The rules for the claims of access tokens and of introspection responses.

mod introspection_response;
mod scopes;
mod statement;
#[cfg(test)]
mod tests;
pub(crate) mod token_type;
pub(crate) mod validation;

pub(crate) use introspection_response::{ValidResponse, validate_response};
pub(crate) use statement::Statement;
