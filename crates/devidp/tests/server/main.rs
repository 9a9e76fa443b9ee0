//! The server over real loopback sockets.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod authorization;
mod consent;
mod flow;
mod introspection;
mod listening;
mod metadata;
mod registration;
mod support;
mod tokens;
