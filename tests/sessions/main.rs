//! Sessions over sockets: opening, use, limits, eviction, streams and end.
#![allow(
    clippy::unwrap_used,
    reason = "a scenario fails where something is missing"
)]

mod administration;
mod confirming;
mod ending;
mod evicting;
mod future;
mod keys;
mod leftovers;
mod life;
mod limits;
mod listening;
mod opening_and_deleting;
mod reloading;
mod reloading_ends;
mod reloading_often;
mod renewing;
mod replicas;
mod restarting;
mod revisions;
mod sealed;
mod stateless;
mod streams;
mod without_authorization;
mod without_state;
