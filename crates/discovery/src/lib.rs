//! Bounded fetches, and the chain from a challenge to authorization server metadata.
//!
//! Two things live here:
//!
//! - [`Fetch`], the one way in which this workspace reaches authorization servers and metadata documents.
//!   [`HttpFetch`] is the real one (feature `reqwest`, on by default): one deadline and one size limit for each
//!   request, no redirects, no cookies, no content codings, and a [`UrlPolicy`] that judges the addresses a name
//!   resolves to before a connection is made.
//! - [`Discovery`], which finds a protected resource's metadata (RFC 9728) and an authorization server's (RFC 8414,
//!   OpenID Connect Discovery), in the order that the standards ask for, and compares what each document says of
//!   itself with what was asked for. It runs on any `Fetch`, so that tests need no network.
//!
//! ```
//! use std::sync::Arc;
//! use portcullis_discovery::{ChainPolicy, Discovery, FetchSettings, HttpFetch};
//! use url::Url;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fetch = Arc::new(HttpFetch::new(FetchSettings::default())?);
//! let resource = Url::parse("http://127.0.0.1:9/mcp")?;
//! let discovery = Discovery::new(fetch, ChainPolicy::started_at(&resource, false));
//!
//! // Nobody listens on this port.
//! let error = discovery.protected_resource(&resource, None, None).await.unwrap_err();
//! assert_eq!(error.code(), "fetch.connect");
//! # Ok(())
//! # }
//! ```

mod addresses;
mod chain;
mod chain_policy;
#[cfg(feature = "reqwest")]
mod connection_pool;
mod error;
mod fetch;
#[cfg(feature = "reqwest")]
mod http_fetch;
mod policy;
#[cfg(feature = "reqwest")]
mod proxy;
#[cfg(feature = "reqwest")]
mod resolver;
#[cfg(feature = "reqwest")]
mod tls;

pub use chain::{
    Attempt, AttemptOutcome, Attempts, DiscoveredResource, Discovery, DiscoveryError, InsecureEndpoint, MetadataSource,
    ResourceMatch, insecure_endpoints,
};
pub use chain_policy::ChainPolicy;
pub use error::{CertificateProblem, FetchError, FetchSettingsError, NetworkError, NetworkFailure, UrlPolicyError};
pub use fetch::{BodyStream, BoxFuture, Fetch, FetchRequest, FetchResponse, OpenResponse};
#[cfg(feature = "reqwest")]
pub use http_fetch::{FetchSettings, HttpFetch};
pub use policy::UrlPolicy;

/// A URL as it may appear in logs and errors: query, fragment and user information taken off.
pub(crate) fn without_query(url: &url::Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // These fail for URLs without a host alone, which carry no user information.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.into()
}
