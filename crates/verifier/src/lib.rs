//! Access token verification: issuers, keys, audience and time rules, verified-token cache.

mod cache;
mod error;
mod issuer;
mod principal;
mod settings;
mod token;
mod verifier;

pub use error::VerifyError;
pub use issuer::TrustedIssuer;
pub use principal::Principal;
pub use settings::SettingsError;
pub use token::VerifiedToken;
pub use verifier::{Verifier, VerifierSettings};
