#![doc = include_str!("../README.md")]
//!
//! # Verification
//!
//! [`Validation`] selects how the tokens of an issuer are verified: by signature, by introspection,
//! or by both. [`IssuerSettings`] and [`VerifierSettings`] have the options that
//! [`Verifier::builder`] does not set.
//!
//! # Tokens for a client
//!
//! A server that is itself a client of an OpenID provider verifies ID tokens and logout tokens with
//! [`TrustedIssuer::verify_id_token`] and [`TrustedIssuer::verify_logout_token`]. They are not
//! accepted as access tokens, and access tokens are not accepted in their place.

mod attachments;
mod builder;
mod cache;
mod claims;
mod error;
mod held_token;
mod id_token;
mod inactive_tokens;
mod introspection;
mod invalid_token_throttle;
mod issuer;
mod json_claims;
mod limit_hasher;
mod observer;
mod principal;
mod recheck;
mod revoked_tokens;
mod settings;
mod single_flight;
mod time;
mod token_hash;
mod verified_token;
mod verify;

pub use builder::{VerifierBuilder, VerifierBuilderError};
pub use error::VerifyError;
pub use held_token::HeldToken;
pub use id_token::{ExpectedIdToken, IdToken, IdTokenError, LogoutToken};
pub use inactive_tokens::{InactiveTokens, TokenId};
pub use introspection::{introspection_request, rejects_client};
pub use issuer::{IssuerActivity, IssuerHealth, RefreshError, TrustedIssuer};
pub use json_claims::{claim_at, is_claim_path};
pub use limit_hasher::LimitHasher;
pub use observer::VerificationObserver;
pub use portcullis_metadata::AccessToken;
pub use principal::Principal;
pub use recheck::{RecheckFailure, WatchedToken};
pub use revoked_tokens::RevokedTokens;
pub use settings::{
    ApplicationAudience, ApplicationAudienceError, AudienceName, FurtherAudience,
    IntrospectionAuthentication, IntrospectionSettings, IssuerSettings, KeySource, Validation,
    VerifierSettingsError,
};
pub use verified_token::VerifiedToken;
pub use verify::{RuleCheck, TokenRule, Verifier, VerifierSettings};

#[cfg(test)]
mod testing;
