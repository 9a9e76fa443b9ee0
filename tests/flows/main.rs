//! What clients that mean well do, and exactly what they get.

mod cors;
mod http2;
mod identity;
mod logging;
mod metadata;
mod scopes;
mod section_3;
mod section_7;
mod streaming;
