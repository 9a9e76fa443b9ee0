//! Flows of well-behaved clients and the exact responses.
#![allow(
    clippy::unwrap_used,
    reason = "a scenario fails where something is missing"
)]

mod audit;
mod broker;
mod call;
mod canary;
mod certificates;
mod check_online;
mod claims;
mod client_revisions;
mod connect;
mod connect_network;
mod cors;
mod demo_flow;
mod diagnosis;
mod disconnecting;
mod doctor;
mod doctor_causes;
mod doctor_page;
mod egress_proxy;
mod health;
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
mod metrics;
mod packages;
mod rejections;
mod revocation;
mod scope_requests;
mod scopes;
mod sign_in;
mod streaming;
mod tls;
mod traces;
mod unwritable_store;
mod without_browser;
