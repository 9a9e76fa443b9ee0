//! What the black-box scenarios are written with: the real binary, started on a free port, a recording upstream behind
//! it, an authorization server whose keys a scenario holds, and HTTP clients that send exactly what they are given.
//!
//! Everything here panics on misuse, as tests do.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test's tools fail the test")]

mod answer;
mod audit;
mod authorization_server;
mod binary;
mod connection;
mod deployment;
mod http2;
mod log;
mod messages;
mod peer;
mod portcullis;
mod raw_upstream;
mod request;
mod scratch;
mod upstream;

pub use answer::Answer;
pub use audit::audit_records;
pub use authorization_server::AuthorizationServer;
pub use binary::binary;
pub use connection::Connection;
pub use deployment::{Deployment, DeploymentBuilder};
pub use http2::Http2;
pub use messages::{INITIALIZE, call, modern_call, modern_request};
pub use peer::{Peer, PeerAnswer, PeerRequest};
pub use portcullis::{Finished, Portcullis};
pub use raw_upstream::{RawRequest, RawUpstream};
pub use request::{Request, exchange};
pub use scratch::Scratch;
pub use upstream::{Recorded, Reply, Trickle, Upstream};

use std::time::Duration;

/// A scenario that waits longer than this for anything has failed.
const PATIENCE: Duration = Duration::from_secs(20);
