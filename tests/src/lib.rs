//! Shared code of the tests that run the real program over sockets: the program, its peers, its
//! clients, and tools for processes, ports and files.
//!
//! All functions that do not return a `Result` panic on misuse.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test tools fail the test"
)]

mod administration;
mod audit;
mod authorization_server;
mod broker;
mod channel_body;
mod connect_proxy;
mod connection;
mod deployment;
mod event_streams;
mod finished;
mod full_run;
mod http2;
mod http_response;
mod log;
mod messages;
mod npm;
mod peer;
mod portcullis;
mod private_authority;
mod process;
mod program;
mod raw_upstream;
mod reason_codes;
mod recorded_request;
mod redis;
mod reloadable_server;
mod request;
mod runtime;
mod scratch;
mod terminal;
mod upstream;

// The program.
pub use administration::Administration;
pub use deployment::{Deployment, DeploymentBuilder};
pub use finished::Finished;
pub use portcullis::Portcullis;
pub use program::{limited_command, listen_address, portcullis_command, portcullis_program};
pub use reloadable_server::ReloadableServer;
pub use terminal::{Terminal, in_terminal};

// Its peers.
pub use authorization_server::AuthorizationServer;
pub use broker::{
    BrokerClient, BrokerIdp, BrokerServer, BrokerSettings, Browser, McpSession, ProviderKind,
    TokenPair,
};
pub use channel_body::ChannelBody;
pub use connect_proxy::ConnectProxy;
pub use event_streams::{EventStream, EventStreams};
pub use peer::{Peer, PeerRequest, PeerResponse};
pub use private_authority::PrivateAuthority;
pub use raw_upstream::{RawRequest, RawUpstream};
pub use recorded_request::RecordedRequest;
pub use redis::{Redis, readiness, wait_for_state, wait_until_ready};
pub use upstream::{ResponseBody, Upstream};

// Its clients.
pub use connection::Connection;
pub use http_response::HttpResponse;
pub use http2::Http2;
pub use messages::{INITIALIZE, call_message, modern_call_message, modern_request};
pub use request::{Request, send_bytes};

// Tools.
pub use audit::audit_records;
pub use full_run::is_full_run;
pub use npm::npm_install;
pub use portcullis_testkit::ReservedPort;
pub use process::{Process, Signal, free_address};
pub use runtime::block_on;
pub use scratch::Scratch;

use std::time::Duration;

/// The timeout of waits for responses, log lines, records, and the end of the program. [`Process`]
/// and [`npm_install`] have timeouts of their own.
pub const TIMEOUT: Duration = Duration::from_secs(20);
