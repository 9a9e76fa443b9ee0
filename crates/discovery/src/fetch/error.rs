//! [`FetchError`]: why a fetch failed.

use super::{
    network_error::{NetworkError, NetworkFailure},
    settings_error::FetchSettingsError,
};
use crate::url_policy::UrlPolicyError;

/// Why a fetch failed. No variant contains a header, a body or a query.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL policy forbids the address. Nothing was sent.
    #[error("refused to connect: {0}")]
    UrlPolicy(UrlPolicyError),
    /// The deadline passed.
    #[error("the response was not complete in time")]
    Timeout,
    /// The body is longer than the request allows.
    #[error("the response is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The network, TLS or HTTP failed.
    #[error(transparent)]
    Network(NetworkError),
    /// The fetcher's settings cannot be used.
    #[error(transparent)]
    Settings(#[from] FetchSettingsError),
}

impl FetchError {
    /// Returns a stable code for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UrlPolicy(error) => error.code(),
            Self::Timeout => "fetch.timeout",
            Self::TooLarge { .. } => "fetch.too_large",
            Self::Network(error) => error.failure().code(),
            Self::Settings(_) => "fetch.settings",
        }
    }

    /// Creates a network error without a cause.
    pub fn network(failure: NetworkFailure) -> Self {
        Self::Network(NetworkError::new(failure))
    }
}
