//! Tests of the server over loopback sockets.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod assertion_grants;
mod assertions;
mod authorization;
mod client_authentication;
mod clients;
mod consent;
mod device;
mod documents;
mod dpop;
mod faults;
mod flow;
mod id_tokens;
mod introspection;
mod listening;
mod logout;
mod management;
mod metadata;
mod providers;
mod refresh;
mod registration;
mod removed_users;
mod rotation;
mod sign_in;
mod support;
mod token_faults;
mod tokens;
mod user_info;
