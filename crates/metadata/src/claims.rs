//! What a token says: the claims of a JWT access token, and the response of an introspection
//! endpoint.
//!
//! | parser | input | result |
//! |---|---|---|
//! | [`unverified_issuer`] | the payload of a token | `iss` alone, to choose the keys that verify the signature |
//! | [`UnverifiedClaims`] | the same | the claims, borrowed from the payload |
//! | [`AccessTokenClaims`] | the same | the claims as owned values, with those that have no field |
//! | [`IntrospectionResponse`] | the body of an introspection response | its members as owned values |
//!
//! The parsers check syntax and types. They do not check a signature, a date, an issuer or an
//! audience.

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
