//! [`EndpointBuilderError`]: why an endpoint cannot be built.

use portcullis_guard::GuardBuilderError;
use portcullis_session::KeyError;

use crate::settings::EndpointSettingsError;

/// Why an [`EndpointBuilder`](crate::EndpointBuilder) cannot build an endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointBuilderError {
    /// The guard cannot be built.
    #[error(transparent)]
    Guard(#[from] GuardBuilderError),
    /// The endpoint's settings cannot be used.
    #[error(transparent)]
    Settings(#[from] EndpointSettingsError),
    /// There is no session key.
    #[error(transparent)]
    SessionKey(#[from] KeyError),
    /// `build` was called outside a tokio runtime.
    #[error("no tokio runtime; call build() inside one")]
    NoRuntime,
}

impl EndpointBuilderError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Guard(error) => error.code(),
            Self::Settings(error) => error.code(),
            Self::SessionKey(error) => error.code(),
            Self::NoRuntime => "settings.no_runtime",
        }
    }
}
