//! Metadata documents of resources and authorization servers, and where to find them.

mod authorization_server;
mod jwk_set;
mod protected_resource;
mod well_known;

pub use authorization_server::AuthorizationServerMetadata;
pub use jwk_set::{Jwk, JwkRejection, JwkSet, RejectedJwk};
pub use protected_resource::ProtectedResourceMetadata;
pub use well_known::{authorization_server_urls, protected_resource_path, protected_resource_urls};
