#![doc = include_str!("../README.md")]
#![allow(clippy::expect_used, reason = "test utilities fail the test")]

mod canary;
mod clock;
mod fetch_fn;
mod gate;
mod hostile;
mod keys;
pub mod protected_resource;
mod reply;
mod reserved_port;
mod resource_urls;
mod scratch_directory;
mod scripted_fetch;
#[cfg(feature = "proptest")]
pub mod strategies;
mod test_issuer;
mod token;

pub use canary::{Canaries, Leak};
pub use clock::ManualClock;
pub use fetch_fn::{FetchFn, form};
pub use gate::Gate;
pub use hostile::{flip_payload, flip_signature, hmac_token, public_key_forms};
pub use reply::Reply;
pub use reserved_port::ReservedPort;
pub use scratch_directory::ScratchDirectory;
pub use scripted_fetch::ScriptedFetch;
pub use test_issuer::TestIssuer;
pub use token::TokenBuilder;
