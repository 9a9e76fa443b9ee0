//! Test utilities of this workspace. Use it only as a dev-dependency. All functions panic on misuse.
//!
//! - [`ManualClock`]: a clock that tests set.
//! - [`TestIssuer`] and [`TokenBuilder`]: valid and malicious tokens.
//! - [`ScriptedFetch`] and [`FetchFn`]: responses to fetches, from a script or a function. [`protected_resource`] has such
//!   functions.
//! - [`Canaries`]: detects leaked secrets.
//! - [`ScratchDirectory`]: a temporary directory.
//!
//! ```
//! use portcullis_jose::{AlgorithmSet, CompactJws, KeySet};
//! use portcullis_metadata::JwkSet;
//! use portcullis_testkit::TestIssuer;
//!
//! let issuer = TestIssuer::new("https://issuer.example");
//! let token = issuer.token().scope("mcp:tools").sign();
//!
//! let jwks = JwkSet::parse(issuer.jwks_json().as_bytes())?;
//! let (keys, _) = KeySet::from_jwks(&jwks, AlgorithmSet::default())?;
//! assert!(keys.verify(&CompactJws::parse(&token, 16_384)?).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::expect_used, reason = "test utilities fail the test")]

mod canary;
mod clock;
mod fetch_fn;
mod gate;
mod hostile;
mod keys;
pub mod protected_resource;
mod reply;
mod resource_urls;
mod scratch_directory;
mod scripted_fetch;
mod test_issuer;
mod token;

pub use canary::{Canaries, Leak};
pub use clock::ManualClock;
pub use fetch_fn::FetchFn;
pub use gate::Gate;
pub use hostile::{flip_payload, flip_signature, hmac_token, public_key_forms};
pub use reply::Reply;
pub use scratch_directory::ScratchDirectory;
pub use scripted_fetch::ScriptedFetch;
pub use test_issuer::TestIssuer;
pub use token::TokenBuilder;
