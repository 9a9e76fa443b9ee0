//! Access tokens: [`resource_token`], the token endpoint, granted scopes, and DPoP with its nonces.

pub(crate) mod dpop;
mod dpop_nonces;
pub(crate) mod endpoint;
mod granted_scopes;
pub(crate) mod resource_token;
