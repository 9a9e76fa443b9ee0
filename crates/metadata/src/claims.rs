//! Token claims and introspection responses.

mod access_token;
mod error;
mod introspection;
mod unverified;
mod unverified_issuer;

pub use access_token::AccessTokenClaims;
pub use error::ClaimsError;
pub use introspection::IntrospectionResponse;
pub use unverified::UnverifiedClaims;
pub use unverified_issuer::unverified_issuer;

#[cfg(test)]
mod tests;
