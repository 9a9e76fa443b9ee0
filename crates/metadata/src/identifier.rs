//! Identifiers that are compared as written: issuers, resources, audiences and scopes.

mod audience;
mod issuer;
mod resource_uri;
mod scopes;
pub(crate) mod uri;
mod uuid;

pub use audience::Audience;
pub use issuer::{Issuer, IssuerError, is_https_or_loopback_http, is_loopback};
pub use resource_uri::{ResourceUri, ResourceUriError};
pub use scopes::{Scopes, ScopesError};
pub use uuid::is_uuid;
