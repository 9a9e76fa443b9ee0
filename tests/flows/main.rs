//! What clients that mean well do, and exactly what they get.
#![allow(clippy::unwrap_used, reason = "a scenario fails where something is missing")]

mod cors;
mod http2;
mod identity;
mod logging;
mod metadata;
mod scopes;
mod section_3;
mod section_7;
mod streaming;
