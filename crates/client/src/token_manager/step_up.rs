//! The step-up: a token with more scopes, after a 403.

use std::sync::Arc;

use portcullis_metadata::Scopes;

use super::{Source, TokenManager};
use crate::{ClientError, RedirectError, ResourceToken, resource_challenge::ResourceChallenge};

impl TokenManager {
    /// Replaces a token that the resource rejected with 403 by one with more scopes. Returns false
    /// if a request is useless: the scopes were denied before, or the token has them.
    pub(super) async fn step_up(
        &self,
        used: Option<&Arc<ResourceToken>>,
        challenge: &ResourceChallenge,
        missing: &Scopes,
    ) -> Result<bool, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok(false);
        };
        let wanted = missing.clone();
        let covers = move |token: &ResourceToken| {
            token.scopes().is_some() && token.missing_scopes(&wanted).is_empty()
        };
        if authorizer.is_final()
            || !authorizer.may_request(missing)
            || used.is_some_and(|used| covers(used))
        {
            return Ok(false);
        }
        let _one_at_a_time = self.renewing.lock().await;
        if self.is_replaced(authorizer, used)
            && self.current().is_some_and(|current| covers(&current))
        {
            return Ok(true);
        }
        if !self.denied_scopes().intersection(missing).is_empty() {
            return Ok(false);
        }
        let now = authorizer.clock().now();
        let before = self.current();
        let is_acceptable = {
            let covers = covers.clone();
            move |token: &ResourceToken| !token.is_expired(now) && covers(token)
        };
        match self
            .obtain(
                authorizer,
                &challenge.for_step_up(missing),
                before.clone(),
                is_acceptable,
            )
            .await
        {
            Ok(token) if covers(&token) => Ok(true),
            Ok(token) => {
                self.add_denied_scopes(token.missing_scopes(missing));
                Ok(false)
            }
            Err(error) => {
                if is_denial(&error) {
                    let denied = before
                        .map_or_else(|| missing.clone(), |before| before.missing_scopes(missing));
                    self.add_denied_scopes(denied);
                }
                Err(error)
            }
        }
    }

    fn add_denied_scopes(&self, scopes: Scopes) {
        let mut held = self.held.write();
        held.denied = held.denied.union(&scopes);
    }
}

/// Whether the user or the server denied the scopes.
fn is_denial(error: &ClientError) -> bool {
    let error = match error {
        ClientError::TokenRequest(error) | ClientError::Redirect(RedirectError::Denied(error)) => {
            error
        }
        _ => return false,
    };
    matches!(error.error.as_str(), "access_denied" | "invalid_scope")
}
