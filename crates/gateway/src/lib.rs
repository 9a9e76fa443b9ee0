//! The targets of admitted requests: an HTTP server behind the gateway, over TCP, TLS or a Unix socket.
//!
//! [`HttpUpstream`] is a `tower` service that takes only [`Admitted`](portcullis_endpoint::Admitted) requests, so that no
//! request reaches the upstream without passing the endpoint. It never fails: failures become responses. It identifies the
//! caller in [`IdentityHeader`]s, removes the caller's credentials, and streams responses. One future drives a request and
//! its response, without a background task.
//!
//! For a service in the same process, use [`Plain`](portcullis_endpoint::Plain) instead of this crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_endpoint::Admitted;
//! use portcullis_gateway::{UpstreamAddress, HttpUpstream, HttpUpstreamSettings, IdentityHeader, IdentitySource, UpstreamSettingsError};
//! use portcullis_metadata::SystemClock;
//! use tower_service::Service;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Arc::new(SystemClock::new());
//! let mut settings = HttpUpstreamSettings::new(UpstreamAddress::Tcp("http://127.0.0.1:8000/mcp".parse()?));
//! settings.identity_headers.push(IdentityHeader::new("x-user-email".parse()?, IdentitySource::Claim("email".into())));
//! settings.public_url = Some("https://mcp.example.com/mcp".parse()?);
//!
//! // The inner service of `EndpointLayer`. Make one per runtime.
//! let upstream = HttpUpstream::new(settings, clock.clone())?;
//! fn is_for_admitted_requests(_: impl Service<Admitted>) {}
//! is_for_admitted_requests(upstream);
//!
//! // An https upstream needs trusted certificates.
//! let tls = HttpUpstreamSettings::new(UpstreamAddress::Tcp("https://upstream.example/mcp".parse()?));
//! assert_eq!(HttpUpstream::new(tls, clock).unwrap_err(), UpstreamSettingsError::TrustMissing);
//! # Ok(())
//! # }
//! ```

mod address;
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
pub use response::UpstreamBody;
pub use settings::HttpUpstreamSettings;
pub use upstream::{HttpUpstream, UpstreamFuture};
