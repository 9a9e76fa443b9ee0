//! [`VerifierBuilderError`]: why a builder cannot build a verifier.

use portcullis_discovery::FetchError;
use portcullis_metadata::{IssuerError, ResourceUriError};

use crate::settings::VerifierSettingsError;

/// Why a [`VerifierBuilder`](crate::VerifierBuilder) cannot build a verifier. The message names the
/// builder's method and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierBuilderError {
    /// The resource is not a valid resource identifier (RFC 8707 section 2).
    #[error(
        "Verifier::builder({resource:?}): {reason}; pass the URL that clients use, such as https://api.example.com/"
    )]
    Resource {
        /// The string that was passed.
        resource: String,
        /// The reason why the identifier is invalid.
        reason: ResourceUriError,
    },
    /// The resource is plain `http` on a host other than loopback (RFC 9728 section 1.2).
    #[error(
        "Verifier::builder({0:?}): plain http is accepted for loopback hosts only; pass an https URL"
    )]
    InsecureResource(String),
    /// There is no issuer.
    #[error(
        "no issuer; call issuer(\"https://…\") with the issuer identifier of your authorization server"
    )]
    NoIssuer,
    /// An issuer is not a valid issuer identifier (RFC 8414 section 2), or is plain `http` on a
    /// host other than loopback.
    #[error(
        "issuer({issuer:?}): {reason}; pass the issuer as the authorization server's metadata writes it"
    )]
    Issuer {
        /// The string that was passed.
        issuer: String,
        /// The reason why the identifier is invalid.
        reason: IssuerError,
    },
    /// `build` was called outside a tokio runtime.
    #[error("no tokio runtime; call build() inside one, or pass its handle with runtime(handle)")]
    NoRuntime,
    /// The default fetcher cannot be created.
    #[error("the default fetcher cannot be created: {0}; pass another one with fetch(…)")]
    Fetch(FetchError),
    /// The settings of an issuer, or all of them together, cannot be used.
    #[error(transparent)]
    Settings(#[from] VerifierSettingsError),
}

impl VerifierBuilderError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Resource { reason, .. } => reason.code(),
            Self::InsecureResource(_) => "settings.insecure_resource",
            Self::NoIssuer => "settings.no_issuer",
            Self::Issuer { reason, .. } => reason.code(),
            Self::NoRuntime => "settings.no_runtime",
            Self::Fetch(error) => error.code(),
            Self::Settings(error) => error.code(),
        }
    }
}
