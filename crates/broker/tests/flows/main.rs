//! Whole sign-ins against an identity provider that the test controls.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helpers fail the test"
)]

mod remembered;
mod sign_in;
mod support;
