#![doc = include_str!("../README.md")]

pub mod authentication;
pub mod authorization;
pub mod client;
mod error;
mod grant;
mod introspection;
mod issued_token;
mod metadata;
mod params;
mod policy;
mod random;
mod registration;
pub mod resource;
mod revocation;
pub mod scopes;
mod store;
pub mod token;

pub use error::{ErrorCode, ErrorResponse};
pub use grant::{AuthorizationCode, Grant};
pub use introspection::introspect;
pub use issued_token::{IssuedToken, TokenVerifier};
pub use metadata::{ServerMetadata, algorithm_names};
pub use params::{DuplicateParameter, Params};
pub use policy::{Policy, RefreshRequest};
pub use random::{RandomError, random_bytes, random_secret};
pub use registration::register;
pub use revocation::revoke;
pub use store::{Redemption, Rotation, Store, StoreError};
