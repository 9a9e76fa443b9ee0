//! Access token verification: issuers, keys, audience and time rules, verified-token cache.

mod cache;
mod claims;
mod error;
mod flight;
mod health;
mod issuer;
mod keys;
mod kind;
mod principal;
mod refresh_error;
mod schedule;
mod settings;
mod source;
mod token;
mod verifier;

pub use error::VerifyError;
pub use health::IssuerHealth;
pub use issuer::TrustedIssuer;
pub use principal::Principal;
pub use refresh_error::RefreshError;
pub use settings::{IssuerSettings, KeySource, SettingsError, Validation};
pub use token::VerifiedToken;
pub use verifier::{Verifier, VerifierSettings};
