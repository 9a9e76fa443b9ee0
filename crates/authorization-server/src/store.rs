//! [`Store`]: what an authorization server must remember.

use std::{error::Error, future::Future};

use crate::{ErrorCode, ErrorResponse, RandomError};

/// What an authorization server must remember.
///
/// Each method is one operation: another request, another replica or a crash cannot divide it. A
/// method that changes something returns after the change is durable, so that a response that was
/// sent is never forgotten.
pub trait Store: Send + Sync {
    /// Records the use of an assertion, which `issuer` and `jti` identify, for
    /// [`MAX_ASSERTION_LIFETIME`](crate::authentication::MAX_ASSERTION_LIFETIME). Returns `false`
    /// if it was used before.
    ///
    /// # Errors
    /// Fails when the use cannot be recorded.
    fn use_assertion(
        &self,
        issuer: &str,
        jti: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Why a store cannot do what it must.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A table is full, and nothing in it can be evicted.
    #[error("the store is full")]
    Full,
    /// The operating system gave no random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// The store cannot be reached, or failed.
    #[error("the store failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Random(error) => error.into(),
            StoreError::Full | StoreError::Failed(_) => Self::new(
                ErrorCode::TemporarilyUnavailable,
                "the server cannot store the result; try again later",
            ),
        }
    }
}
