//! Faults of issuers, upstreams, clients, configurations and the machine, one kind per file.
#![allow(
    clippy::unwrap_used,
    reason = "a scenario fails where something is missing"
)]

mod abandoned_requests;
mod audit;
mod audit_chain;
mod broker;
mod check;
mod descriptors;
mod draining;
mod early_signals;
mod floods;
mod in_progress;
mod interrupted_refresh;
mod introspection;
mod issuer;
mod keys;
mod rejection_floods;
mod reloaded_listeners;
mod shutdown;
mod silent_redirects;
mod slow_upstream;
mod socket_activation;
mod stalled;
mod start;
mod state_directory;
mod upstream;
