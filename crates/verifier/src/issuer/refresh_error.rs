//! [`RefreshError`]: why a refresh failed.

use portcullis_discovery::{DiscoveryError, FetchError, UrlPolicyError};
use portcullis_jose::KeyError;
use portcullis_metadata::DocumentError;

/// Why an issuer's keys cannot be fetched or its introspection endpoint cannot be found. The
/// current keys remain in use.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// The issuer's metadata cannot be discovered.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The issuer's metadata has no `jwks_uri`.
    #[error("the issuer's metadata has no jwks_uri")]
    NoJwksUri,
    /// The URL policy forbids the `jwks_uri` of the issuer's metadata.
    #[error(
        "the jwks_uri of the issuer's metadata is not permitted: {0}; private and loopback addresses that the metadata names are \
         permitted only if the issuer's own host is private; if this one is right, configure it"
    )]
    JwksUri(UrlPolicyError),
    /// The issuer's metadata has no `introspection_endpoint`, which the settings require.
    #[error("the issuer's metadata has no introspection_endpoint")]
    NoIntrospectionEndpoint,
    /// The URL policy forbids the `introspection_endpoint` of the issuer's metadata.
    #[error(
        "the introspection_endpoint of the issuer's metadata is not permitted: {0}; private and loopback addresses that the \
         metadata names are permitted only if the issuer's own host is private; if this one is right, configure it"
    )]
    IntrospectionEndpoint(UrlPolicyError),
    /// The keys cannot be fetched: the connection, TLS, a limit of the fetch or the URL policy.
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
    /// The set has more than [`MAX_KEYS`](portcullis_jose::MAX_KEYS) keys. A key that cannot be
    /// used is no error.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// A step of the refresh took longer than its timeout.
    #[error("the refresh took too long")]
    Timeout,
    /// The task of the refresh was cancelled, because the control runtime is shutting down, or
    /// panicked.
    #[error("the refresh was interrupted")]
    Interrupted,
}

impl RefreshError {
    /// Returns a stable code for logs and readiness.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Discovery(error) => error.code(),
            Self::NoJwksUri => "issuer.no_jwks_uri",
            Self::NoIntrospectionEndpoint => "issuer.no_introspection_endpoint",
            Self::JwksUri(_) => "issuer.jwks_uri",
            Self::IntrospectionEndpoint(_) => "issuer.introspection_endpoint",
            Self::Fetch(error) => error.code(),
            Self::Status { .. } => "issuer.keys_status",
            Self::Document(error) => error.code(),
            Self::Keys(error) => error.code(),
            Self::Timeout => "issuer.timeout",
            Self::Interrupted => "issuer.interrupted",
        }
    }
}
