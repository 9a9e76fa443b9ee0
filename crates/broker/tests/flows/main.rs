//! Whole sign-ins against an identity provider that the test controls, and attacks on them.
//!
//! The comment of each attack begins with the rule of `docs/contribute/broker-threats.md` that it
//! shows.

mod authorization;
mod codes;
mod consent;
mod documents;
mod provider;
mod refresh;
mod registration;
mod sign_in;
mod support;
