//! Access tokens: [`resource_token`], the token endpoint, and DPoP.

pub(crate) mod dpop;
pub(crate) mod endpoint;
pub(crate) mod resource_token;
