//! Access tokens: [`resource_token`], the token endpoint, and DPoP.

pub(crate) mod dpop;
mod dpop_nonces;
pub(crate) mod endpoint;
mod granted_scopes;
pub(crate) mod resource_token;
