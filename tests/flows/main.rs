//! Flows of well-behaved clients and the exact responses.
#![allow(clippy::unwrap_used, reason = "a scenario fails where something is missing")]

mod audit;
mod call;
mod canary;
mod check_online;
mod claims;
mod client_revisions;
mod connect;
mod connect_network;
mod cors;
mod diagnosis;
mod disconnecting;
mod doctor;
mod egress_proxy;
mod http2;
mod identity;
mod idp;
mod idp_providers;
mod import_mcp_remote;
mod init;
mod introspection;
mod logging;
mod login;
mod mcp_remote;
mod metadata;
mod revocation;
mod scopes;
mod section_3;
mod section_7;
mod sign_in;
mod streaming;
mod tls;
mod unwritable_store;
