//! [`SignOut`]: removes tokens and revokes them.

use std::sync::Arc;

use super::{Held, Source, TokenManager};
use crate::{ClientError, Revocation, store::ignore_corrupted};

/// The result of a sign-out. With several tokens, it is the least that the authorization servers
/// did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignOut {
    /// There was no token.
    NotSignedIn,
    /// The token was removed, and the authorization server revoked it.
    Revoked,
    /// The token was removed, and the authorization server revoked the refresh token. It cannot
    /// revoke the access token, which stays valid until it expires.
    RefreshTokenRevoked,
    /// The token was removed from the store only. The authorization server does not support its
    /// revocation, so it stays valid until it expires.
    ForgottenLocally,
}

impl From<Revocation> for SignOut {
    fn from(revocation: Revocation) -> Self {
        match revocation {
            Revocation::Complete => Self::Revoked,
            Revocation::RefreshTokenOnly => Self::RefreshTokenRevoked,
            Revocation::NotSupported => Self::ForgottenLocally,
        }
    }
}

impl TokenManager {
    /// Removes the token here and from the store, and revokes it at the authorization server if
    /// that supports revocation. It does the same with every other token that could be used for
    /// this URL, such as one that was obtained for a path below it. The client's registration is
    /// kept.
    ///
    /// # Errors
    /// When the store cannot be used; [`ClientError::Revocation`] when a revocation fails: the
    /// tokens are still removed.
    pub async fn sign_out(&self) -> Result<SignOut, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok(SignOut::NotSignedIn);
        };
        let _one_at_a_time = self.renewing.lock().await;
        let mut forgotten = Vec::new();
        while let Some(token) = self.find_token(authorizer)? {
            let entry = authorizer.store().lock_token(&token).await?;
            let latest = ignore_corrupted(entry.read())?.map_or(token, Arc::new);
            entry.remove()?;
            *self.held.write() = Held::default();
            forgotten.push(latest);
        }
        // Unreadable files can contain tokens.
        authorizer.store().remove_corrupted(Some(&self.start))?;
        let mut result = Ok(SignOut::NotSignedIn);
        for token in forgotten {
            let revoked = authorizer
                .revoke(&self.start, &token)
                .await
                .map(SignOut::from);
            let revoked = revoked.map_err(|error| ClientError::Revocation(error.into()));
            result = match (result, revoked) {
                (Err(error), _) | (_, Err(error)) => Err(error),
                (Ok(one), Ok(other)) => Ok(one.max(other)),
            };
        }
        result
    }
}
