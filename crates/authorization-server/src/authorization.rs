//! The authorization endpoint (RFC 6749 section 3.1).

mod request;
mod users;

pub use request::{
    AuthorizationError, AuthorizationRequest, Thumbprint, described_error_location, error_location,
};
pub use users::{Authorization, User, Users, authorize};
