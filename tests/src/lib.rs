//! What the black-box scenarios are written with: the real binary, started on a free port, a recording upstream behind
//! it, and an HTTP client that sends exactly the bytes it is given.
//!
//! Everything here panics on misuse, as tests do.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test's tools fail the test")]

mod answer;
mod binary;
mod portcullis;
mod request;
mod site;
mod upstream;

pub use answer::Answer;
pub use binary::binary;
pub use portcullis::{Finished, Portcullis};
pub use request::{Request, exchange, exchange_on};
pub use site::{INITIALIZE, Site, call};
pub use upstream::{Recorded, Upstream};
