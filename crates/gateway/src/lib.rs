//! What a request is handed to once the endpoint has admitted it: an HTTP server behind the gateway, over TCP or a
//! unix socket.
//!
//! [`HttpUpstream`] is a `tower` service that takes [`Admitted`](portcullis_endpoint::Admitted) requests and nothing
//! else, so that no request gets past the endpoint to an upstream. It never fails: what goes wrong becomes an answer.
//! It says who calls in [`IdentityHeader`]s, keeps the caller's credentials to itself, and streams answers as they
//! come. A request and its answer are driven by one future, without a task or a channel between worker and socket.
//!
//! A service in the same process needs no gateway: [`Plain`](portcullis_endpoint::Plain) puts it behind the endpoint.
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
//! // One for each worker: the service that `EndpointLayer` is given.
//! let upstream = HttpUpstream::new(settings, clock.clone())?;
//! fn is_for_admitted_requests(_: impl Service<Admitted>) {}
//! is_for_admitted_requests(upstream);
//!
//! // An https upstream is judged by certificates that are named.
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
