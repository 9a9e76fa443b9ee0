//! Access tokens: [`resource_token`], the token endpoint, and DPoP.

pub(crate) mod dpop;
pub(crate) mod endpoint;
mod granted_scopes;
pub(crate) mod resource_token;
