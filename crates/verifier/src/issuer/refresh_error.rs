//! [`RefreshError`]: why a refresh failed.

use portcullis_discovery::{DiscoveryError, FetchError};
use portcullis_jose::KeyError;
use portcullis_metadata::DocumentError;

/// Why an issuer's keys cannot be fetched or its introspection endpoint cannot be found. The current keys remain in
/// use.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// The issuer's metadata cannot be discovered.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The issuer's metadata has no `jwks_uri`.
    #[error("the issuer's metadata has no jwks_uri")]
    NoJwksUri,
    /// The issuer's metadata has no `introspection_endpoint`, which the settings require.
    #[error("the issuer's metadata has no introspection_endpoint")]
    NoIntrospectionEndpoint,
    /// The `introspection_endpoint` of the issuer's metadata is neither `https` nor `http` to a loopback host, or the
    /// URL policy refuses it.
    #[error("the introspection_endpoint of the issuer's metadata is neither https nor http to a loopback host")]
    IntrospectionEndpoint,
    /// The keys cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The response's status is not 200.
    #[error("the key endpoint answered with status {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// The response is not a key set.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The set has too many keys.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The refresh took too long.
    #[error("the keys were not fetched in time")]
    Timeout,
    /// The control runtime is shutting down.
    #[error("the fetch was interrupted")]
    Interrupted,
}

impl RefreshError {
    /// Returns a stable code for logs and readiness.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Discovery(error) => error.code(),
            Self::NoJwksUri => "issuer.no_jwks_uri",
            Self::NoIntrospectionEndpoint => "issuer.no_introspection_endpoint",
            Self::IntrospectionEndpoint => "issuer.introspection_endpoint",
            Self::Fetch(error) => error.code(),
            Self::Status { .. } => "issuer.keys_status",
            Self::Document(error) => error.code(),
            Self::Keys(error) => error.code(),
            Self::Timeout => "issuer.timeout",
            Self::Interrupted => "issuer.interrupted",
        }
    }
}
