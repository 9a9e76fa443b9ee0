//! Whole sign-ins against an identity provider that the test controls.

mod sign_in;
mod support;
