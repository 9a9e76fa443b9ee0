#![doc = include_str!("../README.md")]

mod address;
mod broker_cookies;
mod connection;
mod error;
mod hop_by_hop;
mod request;
mod response;
mod settings;
mod upstream;

pub use address::{UpstreamAddress, UpstreamTrust};
pub use connection::ConnectionLimit;
pub use error::{UpstreamBodyError, UpstreamSettingsError};
pub use request::{IdentityHeader, IdentitySource};
pub use response::{REASON_CODES, UpstreamBody};
pub use settings::HttpUpstreamSettings;
pub use upstream::{HttpUpstream, UpstreamFuture};
