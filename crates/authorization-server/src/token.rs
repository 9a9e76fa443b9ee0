//! The token endpoint (RFC 6749 section 3.2).

mod code_exchange;
mod refresh;

pub use code_exchange::exchange_code;
pub use refresh::{RefreshCheck, refresh};

use portcullis_metadata::{Scopes, Secret};

use crate::{error::ErrorResponse, grant::Grant, params::DuplicateParameter, store::StoreError};

/// What the tokens of a response are issued for.
#[derive(Clone, Debug)]
pub struct GrantedTokens {
    /// The grant.
    pub grant: Grant,
    /// The scopes of the access token.
    pub scopes: Scopes,
    /// The refresh token, if the client gets one.
    pub refresh_token: Option<Secret>,
}

/// Why a token request is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The request is rejected, and nothing else happened.
    #[error(transparent)]
    Rejected(#[from] ErrorResponse),
    /// A code or a refresh token was used before, and its grant has ended. A server must write this
    /// to its log: somebody has a copy.
    #[error("{0}; the grant has ended")]
    Replayed(ErrorResponse),
}

impl TokenError {
    /// Returns the error for the client.
    pub const fn response(&self) -> ErrorResponse {
        match self {
            Self::Rejected(error) | Self::Replayed(error) => *error,
        }
    }
}

impl From<DuplicateParameter> for TokenError {
    fn from(error: DuplicateParameter) -> Self {
        Self::Rejected(error.into())
    }
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        Self::Rejected(error.into())
    }
}
