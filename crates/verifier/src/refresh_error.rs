use portcullis_discovery::{DiscoveryError, FetchError};
use portcullis_jose::KeyError;
use portcullis_metadata::DocumentError;

/// Why an issuer's keys could not be fetched, or its introspection endpoint not be found. The keys that are held serve on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// The issuer's metadata could not be had.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The issuer's metadata names no `jwks_uri`.
    #[error("the issuer's metadata names no jwks_uri")]
    NoJwksUri,
    /// The issuer's metadata names no `introspection_endpoint`, and its tokens are to be introspected.
    #[error("the issuer's metadata names no introspection_endpoint")]
    NoIntrospectionEndpoint,
    /// The `introspection_endpoint` of the issuer's metadata is neither `https` nor `http` to a loopback host, or the
    /// URL policy refuses it.
    #[error("the introspection_endpoint of the issuer's metadata is neither https nor http to a loopback host")]
    IntrospectionEndpoint,
    /// The keys' address gave no answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The answer's status is not 200.
    #[error("the keys' address answered with status {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// The answer is no key set.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The set has more keys than are taken.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// All of it together took too long.
    #[error("the keys did not come in time")]
    Timeout,
    /// The runtime that fetches is shutting down.
    #[error("the fetch was interrupted")]
    Interrupted,
}

impl RefreshError {
    /// The stable reason code, for logs and readiness.
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
