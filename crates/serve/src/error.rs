//! [`ServeError`].

use portcullis_config::Diagnostic;

/// Why a server cannot start, or has ended early. The text contains the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting that can only be checked at the start.
    #[error(transparent)]
    Setting(Diagnostic),
    /// The system, a file, a port or a service.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl ServeError {
    pub(crate) fn of(error: anyhow::Error) -> Self {
        match error.downcast::<Diagnostic>() {
            Ok(found) => Self::Setting(found),
            Err(error) => Self::Other(error.reallocate_into_boxed_dyn_error_without_backtrace()),
        }
    }
}
