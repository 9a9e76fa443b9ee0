//! [`RefreshError`]: why a refresh failed.

use portcullis_discovery::{DiscoveryError, FetchError, UrlPolicyError};
use portcullis_jose::KeyError;
use portcullis_metadata::DocumentError;

/// Why an issuer's keys cannot be fetched or its introspection endpoint cannot be found. The
/// current keys remain in use. URLs in errors have no query and no user information.
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
        "the jwks_uri of the issuer's metadata, {url}, is not permitted: {error}; private and loopback addresses that the metadata names are \
         permitted only if the issuer's own host is private; if this one is right, configure it"
    )]
    JwksUri {
        /// The URL.
        url: String,
        /// The reason.
        error: UrlPolicyError,
    },
    /// The issuer's metadata has no `introspection_endpoint`, which the settings require.
    #[error("the issuer's metadata has no introspection_endpoint")]
    NoIntrospectionEndpoint,
    /// The URL policy forbids the `introspection_endpoint` of the issuer's metadata.
    #[error(
        "the introspection_endpoint of the issuer's metadata, {url}, is not permitted: {error}; private and loopback addresses that the \
         metadata names are permitted only if the issuer's own host is private; if this one is right, configure it"
    )]
    IntrospectionEndpoint {
        /// The URL.
        url: String,
        /// The reason.
        error: UrlPolicyError,
    },
    /// The keys cannot be fetched: the connection, TLS, a limit of the fetch or the URL policy.
    #[error("cannot fetch {url}")]
    Fetch {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        error: FetchError,
    },
    /// The response's status is not 200.
    #[error("the key endpoint {url} answered with status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// The response is not a key set.
    #[error("the document at {url} is not a key set")]
    Document {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        error: DocumentError,
    },
    /// The set has more than [`MAX_KEYS`](portcullis_jose::MAX_KEYS) keys. A key that cannot be
    /// used is no error.
    #[error("the key set at {url} cannot be used")]
    Keys {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        error: KeyError,
    },
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
            Self::JwksUri { .. } => "issuer.jwks_uri",
            Self::IntrospectionEndpoint { .. } => "issuer.introspection_endpoint",
            Self::Fetch { error, .. } => error.code(),
            Self::Status { .. } => "issuer.keys_status",
            Self::Document { error, .. } => error.code(),
            Self::Keys { error, .. } => error.code(),
            Self::Timeout => "issuer.timeout",
            Self::Interrupted => "issuer.interrupted",
        }
    }
}
