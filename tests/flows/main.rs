//! What clients that mean well do, and exactly what they get.
#![allow(clippy::unwrap_used, reason = "a scenario fails where something is missing")]

mod audit;
mod canary;
mod claims;
mod client_revisions;
mod connect;
mod cors;
mod disconnecting;
mod doctor;
mod http2;
mod identity;
mod idp;
mod idp_providers;
mod introspection;
mod logging;
mod login;
mod metadata;
mod revocation;
mod scopes;
mod section_3;
mod section_7;
mod sign_in;
mod streaming;
mod tls;
