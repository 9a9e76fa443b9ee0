//! Bounded fetches, and the chain from a challenge to authorization server metadata.

mod addresses;
mod error;
mod fetch;
#[cfg(feature = "reqwest")]
mod http_fetch;
#[cfg(feature = "reqwest")]
mod lane;
mod policy;
#[cfg(feature = "reqwest")]
mod resolver;
#[cfg(feature = "reqwest")]
mod tls;

pub use error::{FetchError, NetworkError, NetworkFailure, Refusal, SettingsError};
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
