//! What goes wrong around the server, and what it says and does then.
#![allow(clippy::unwrap_used, reason = "a scenario fails where something is missing")]

mod audit;
mod check;
mod floods;
mod in_progress;
mod introspection;
mod issuer;
mod keys;
mod shutdown;
mod start;
mod upstream;
