//! Tokens with certain scopes, without the user.

use std::sync::Arc;

use portcullis_metadata::Scopes;

use super::{Source, TokenManager};
use crate::{ClientError, ResourceToken, StoreError};

impl TokenManager {
    /// Returns a valid token as [`token`](Self::token) does. If it lacks some of these scopes,
    /// requests them with the refresh token (RFC 6749 section 6), if they were requested in the
    /// sign-in. The result can still lack them.
    ///
    /// # Errors
    /// As [`token`](Self::token). If only the request for scopes fails, the result is the token
    /// without them.
    pub async fn token_with_scopes(
        &self,
        wanted: &Scopes,
    ) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        let Some(token) = self.token().await? else {
            return Ok(None);
        };
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok(Some(token));
        };
        // The refresh token has at most the scopes of the sign-in.
        let has_scopes = token.missing_scopes(wanted).is_empty();
        if has_scopes || !token.asked().covers(wanted) || token.refresh_token().is_none() {
            return Ok(Some(token));
        }
        // If the granted scopes are unknown, they are assumed to be those of the sign-in, so that
        // none is given up.
        let granted = token.scopes().unwrap_or(token.asked());
        let _one_at_a_time = self.renewing.lock().await;
        match self
            .refresh(authorizer, &token, Some(granted.union(wanted)))
            .await
        {
            Ok(newer) => Ok(Some(newer.unwrap_or(token))),
            // The store has logged a warning.
            Err(ClientError::Store(StoreError::NotWritable { .. })) => Ok(Some(token)),
            Err(error) => {
                tracing::warn!(
                    reason = error.code(),
                    "the scopes were not granted: {error}"
                );
                Ok(Some(token))
            }
        }
    }
}
