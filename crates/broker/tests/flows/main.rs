//! Whole sign-ins against an identity provider that the test controls, and attacks on them.
//!
//! The comment of each attack begins with the rule of `docs/use/broker-security.md` that it
//! shows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helpers fail the test"
)]

mod access_tokens;
mod administration;
mod authorization;
mod client_assertions;
mod codes;
mod consent;
mod cookies;
mod document_fetches;
mod documents;
mod ends;
mod failing_records;
mod log;
mod page;
mod provider;
mod provider_users;
mod random_requests;
mod refresh;
mod registration;
mod rejected_application;
mod remembered;
mod replicas;
mod resources;
mod responses;
mod sign_in;
mod store;
mod store_failures;
mod support;
mod user_state;
