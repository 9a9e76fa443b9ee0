//! Test utilities of this workspace: a [`ManualClock`], a [`Forge`] for valid and malicious tokens, a [`FakeIssuer`] that
//! answers fetches from a script, a [`ScriptedNetwork`] that answers them by a function, and [`Canaries`] that detect leaked
//! secrets. Use it only as a dev-dependency.
//!
//! All functions panic on misuse.
//!
//! ```
//! use portcullis_jose::{AlgorithmSet, Compact, KeySet};
//! use portcullis_metadata::JwkSet;
//! use portcullis_testkit::Forge;
//!
//! let forge = Forge::new("https://issuer.example");
//! let token = forge.token().scope("mcp:tools").sign();
//!
//! let jwks = JwkSet::parse(forge.jwks_json().as_bytes())?;
//! let (keys, _) = KeySet::from_jwks(&jwks, AlgorithmSet::default())?;
//! assert!(keys.verify(&Compact::parse(&token, 16_384)?).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::expect_used, reason = "test utilities fail the test")]

mod canary;
mod clock;
mod fake_issuer;
mod forge;
mod hostile;
mod keys;
pub mod protected_resource;
mod scratch_directory;
mod scripted_network;
mod token;

pub use canary::{Canaries, Leak};
pub use clock::ManualClock;
pub use fake_issuer::{FakeIssuer, Gate};
pub use forge::Forge;
pub use hostile::{flip_payload, flip_signature, hmac_token, public_key_forms};
pub use scratch_directory::ScratchDirectory;
pub use scripted_network::{Reply, ScriptedNetwork};
pub use token::TokenBuilder;
