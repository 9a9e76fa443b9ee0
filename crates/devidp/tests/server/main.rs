//! Tests of the server over loopback sockets.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod assertions;
mod authorization;
mod clients;
mod consent;
mod documents;
mod dpop;
mod faults;
mod flow;
mod introspection;
mod listening;
mod machines;
mod metadata;
mod refresh;
mod registration;
mod rotation;
mod support;
mod tokens;
