//! The protocol over a store and a policy as a production server has them.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod authentication;
mod authorization;
mod codes;
mod documents;
mod known_clients;
mod lenient_registration;
mod redirect_policy;
mod refresh;
mod registration;
mod store;
mod stored_client;
mod support;
mod tokens;
