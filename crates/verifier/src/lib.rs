//! Verifies OAuth access tokens for one protected resource: JWTs (RFC 9068, RFC 8725), and opaque ones (RFC 7662).
//!
//! - A [`TrustedIssuer`] is one issuer and its keys: found by its metadata (RFC 8414), fetched by one refresh at a
//!   time, refreshed in the background, held on to while the issuer is down. Start-up never waits for it.
//! - A [`Verifier`] belongs to one resource and takes tokens of any number of issuers. The token's `iss` picks exactly
//!   one of them; then signature, kind of token, audience and times are judged with that issuer's keys and settings
//!   alone. What was verified is remembered for a short while, by a keyed hash and never by the token.
//! - A [`VerifiedToken`] is the evidence, and only the verifier makes it; its [`Principal`] says whom the token speaks
//!   for and what it allows. Scopes are for the caller to judge.
//!
//! A refused token comes back as a [`VerifyError`] with a stable code for the log. Clients should learn no more than
//! that the token is not accepted, except for [`VerifyError::is_unavailable`]: the token could not be judged, and is
//! worth keeping.
//!
//! An issuer's tokens are verified by signature, by asking the issuer (RFC 7662), or both: see [`Validation`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_metadata::{AccessToken, Issuer, ResourceUri, SystemClock};
//! use portcullis_verifier::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings};
//! # use portcullis_testkit::{ScriptedFetch, TestIssuer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let forge = TestIssuer::new("https://auth.example.com").with_clock(SystemClock::new());
//! # let fetch = ScriptedFetch::new();
//! # fetch.publish(&forge);
//! # let (token, expired) = (forge.token().sign(), forge.token().expires_in(-60).sign());
//! // `fetch` is any `portcullis_discovery::Fetch`, such as its `HttpFetch`.
//! let clock = Arc::new(SystemClock::new());
//! let settings = IssuerSettings::new(Issuer::parse("https://auth.example.com")?);
//! let control = tokio::runtime::Handle::current();
//! let issuer = TrustedIssuer::new(settings, Arc::new(fetch), clock.clone(), control)?;
//! issuer.spawn_refresh();
//!
//! let resource = ResourceUri::parse("https://mcp.example.com/mcp")?;
//! let verifier = Verifier::new(VerifierSettings::new(resource), vec![issuer], clock)?;
//!
//! let verified = verifier.verify(&AccessToken::new(token.as_str())).await?;
//! assert_eq!(verified.principal().subject(), Some("alice"));
//! assert!(verifier.cached(&token).is_some());
//!
//! let refused = verifier.verify(&AccessToken::new(expired)).await;
//! assert_eq!(refused.map_err(|error| error.code()).err(), Some("token.expired"));
//! # Ok(())
//! # }
//! ```

mod builder;
mod cache;
mod claims;
mod deadline;
mod error;
mod introspection;
mod invalid_token_throttle;
mod issuer;
mod principal;
mod recheck;
mod settings;
mod single_flight;
mod token_hash;
mod verified_token;
mod verifier;

pub use builder::{VerifierBuilder, VerifierBuilderError};
pub use error::VerifyError;
pub use introspection::{IntrospectionAuthentication, IntrospectionSettings};
pub use issuer::{IssuerHealth, RefreshError, TrustedIssuer};
pub use principal::Principal;
pub use recheck::{HeldToken, RecheckFailure, WatchedToken};
pub use settings::{
    ApplicationAudience, ApplicationAudienceError, IssuerSettings, KeySource, Validation, VerifierSettingsError,
};
pub use verified_token::VerifiedToken;
pub use verifier::{RuleCheck, TokenRule, Verifier, VerifierSettings};

#[cfg(test)]
mod testing;
