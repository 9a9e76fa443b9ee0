//! [`Store`]: what an authorization server must remember.

use std::{error::Error, future::Future};

use portcullis_metadata::Secret;
use portcullis_reason_codes::ReasonCodes;

use crate::{
    client::ClientRegistration,
    error::{ErrorCode, ErrorResponse},
    grant::{AuthorizationCode, Grant},
    issued_token::IssuedToken,
    random::RandomError,
};

/// What an authorization server must remember: registered clients, codes, grants with their refresh
/// tokens, and used assertions.
///
/// Each method is one operation: another request, another replica or a crash cannot divide it. A
/// method that changes something returns after the change is durable, so that a response that was
/// sent is never forgotten.
///
/// The store makes the codes and refresh tokens, because their form depends on how it finds them
/// again. Each has at least 128 random bits or an authenticator, and is compared in constant time
/// or by its hash (RFC 6749 section 10.10).
///
/// A `check` depends on nothing but its arguments. A store without transactions can read the
/// record, call `check`, and then change the record only if it is still the same. If `check` fails,
/// nothing changes; a store for tests may be stricter.
pub trait Store: Send + Sync {
    /// Stores a registered client, or renews the registration that has this identifier. A
    /// registration must outlive the grants of its client.
    ///
    /// # Errors
    /// Fails with [`StoreError::Full`] when there are too many clients, and all of them are in use.
    fn register_client(
        &self,
        registration: &ClientRegistration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Stores a code and returns it. A code must expire within 10 minutes (RFC 6749 section 4.1.2).
    ///
    /// # Errors
    /// Fails when the code cannot be stored.
    fn issue_code(
        &self,
        code: AuthorizationCode,
    ) -> impl Future<Output = Result<Secret, StoreError>> + Send;

    /// Consumes a code if it was not used before, has not expired, and passes `check`. Its grant
    /// then begins, bound to the DPoP key `key`, if any, with the first refresh token if the code
    /// is refreshable.
    ///
    /// A code is remembered after its use, so that a second use is noticed. It counts as a second
    /// use only if it passes `check`, so that a thief without the PKCE verifier cannot end the
    /// grant.
    ///
    /// # Errors
    /// Fails when the result cannot be stored, or the grant has ended in the meantime.
    fn redeem_code(
        &self,
        code: &str,
        key: Option<&str>,
        check: impl Fn(&AuthorizationCode) -> Result<(), ErrorResponse> + Send,
    ) -> impl Future<Output = Result<Redemption, StoreError>> + Send;

    /// Replaces a refresh token if it is the current one of its grant and passes `check`.
    ///
    /// A token that was replaced is answered with the same successor as before while the store's
    /// time for repetitions lasts, and never with another one: a grant has one line of tokens. It
    /// is [`Rotation::Replayed`] afterwards, whether it passes `check` or not.
    ///
    /// # Errors
    /// Fails when the result cannot be stored, or the grant has ended in the meantime.
    fn rotate_refresh_token(
        &self,
        token: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse> + Send,
    ) -> impl Future<Output = Result<Rotation, StoreError>> + Send;

    /// Returns the grant of a refresh token that is current, without using the token.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    fn find_refresh_token(
        &self,
        token: &str,
    ) -> impl Future<Output = Result<Option<Grant>, StoreError>> + Send;

    /// Ends a grant: its refresh tokens are unknown from now on, and its access tokens inactive. It
    /// is no error if the grant is unknown or has ended.
    ///
    /// # Errors
    /// Fails when the end cannot be stored.
    fn end_grant(&self, id: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes the access token with this identifier inactive, until it would expire.
    ///
    /// # Errors
    /// Fails when the revocation cannot be stored. The client repeats it then: whether the token is
    /// still active depends on the store.
    fn revoke_access_token(&self, id: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns whether neither the access token nor its grant has ended.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    fn is_active(
        &self,
        token: &IssuedToken,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

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

/// What became of a code.
#[derive(Debug)]
pub enum Redemption {
    /// This call consumed the code, and no other one did.
    Redeemed {
        /// The grant, which has begun.
        grant: Grant,
        /// The first refresh token, if the code is refreshable.
        refresh_token: Option<Secret>,
    },
    /// The code does not pass the check.
    Rejected(ErrorResponse),
    /// The code was used before. Its grant must end (RFC 6749 section 4.1.2).
    Used(Grant),
    /// The code was never issued, or has expired.
    Unknown,
}

/// What became of a refresh token.
#[derive(Debug)]
pub enum Rotation {
    /// The token was replaced, now or by an earlier use that this one repeats.
    Rotated {
        /// The grant.
        grant: Grant,
        /// The successor. `None` if the presented token stays valid.
        refresh_token: Option<Secret>,
    },
    /// The token does not pass the check.
    Rejected(ErrorResponse),
    /// The token was replaced before. The grant with this identifier must end (RFC 9700 section
    /// 4.14.2).
    Replayed(Box<str>),
    /// The token was never issued, has expired, or its grant has ended.
    Unknown,
}

/// Why a store cannot do what it must.
#[derive(Debug, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum StoreError {
    /// A table is full, and nothing in it can be evicted.
    #[error("the store is full")]
    #[code = "store.full"]
    Full,
    /// The grant has ended in the meantime.
    #[error("the session has ended")]
    #[code = "store.grant_ended"]
    GrantEnded,
    /// The operating system gave no random bytes.
    #[error(transparent)]
    #[code = "store.random"]
    Random(#[from] RandomError),
    /// The store cannot be reached, or failed.
    #[error("the store failed")]
    #[code = "store.failed"]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// A record cannot be opened: it was sealed with another key, or was changed.
    #[error("a record of the store cannot be opened")]
    #[code = "store.record_unreadable"]
    Unreadable(#[source] Box<dyn Error + Send + Sync>),
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::GrantEnded => Self::new(ErrorCode::InvalidGrant, "the session has ended"),
            StoreError::Random(error) => error.into(),
            StoreError::Full | StoreError::Failed(_) | StoreError::Unreadable(_) => Self::new(
                ErrorCode::TemporarilyUnavailable,
                "the server cannot store the result; try again later",
            ),
        }
    }
}
