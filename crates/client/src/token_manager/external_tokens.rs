//! [`ExternalTokens`]: keeps the token of an [`AccessTokenSource`].

use std::{sync::Arc, time::Duration};

use portcullis_metadata::{AccessToken, Clock, SystemClock, UnixTime};
use tokio::sync::Mutex;

use crate::{AccessTokenSource, ClientError, token::resource_token::renewal_margin};

/// A source and its latest token.
pub(super) struct ExternalTokens {
    source: Arc<dyn AccessTokenSource>,
    held: Mutex<Option<Held>>,
}

/// The token that is used for now.
#[derive(Clone)]
struct Held {
    token: AccessToken,
    /// When the next token is obtained. None if the source does not return the lifetime.
    renew_at: Option<UnixTime>,
}

impl ExternalTokens {
    /// Starts without a token.
    pub(super) fn new(source: Arc<dyn AccessTokenSource>) -> Self {
        Self {
            source,
            held: Mutex::default(),
        }
    }

    /// The held token, or a new one if it expires soon. Concurrent callers wait for one call of the
    /// source. Fails when the source fails, or returns another token than a bearer token.
    pub(super) async fn token(&self) -> Result<AccessToken, ClientError> {
        let mut held = self.held.lock().await;
        let now = SystemClock::new().now();
        if let Some(held) = held
            .as_ref()
            .filter(|held| held.renew_at.is_none_or(|at| now < at))
        {
            return Ok(held.token.clone());
        }
        self.obtain(&mut held).await
    }

    /// Replaces a token that the resource rejected. Returns false if the source returns the same
    /// token again. Fails as [`token`](Self::token) does.
    pub(super) async fn replace(&self, rejected: &AccessToken) -> Result<bool, ClientError> {
        let mut held = self.held.lock().await;
        if held
            .as_ref()
            .is_some_and(|held| held.token.secret() != rejected.secret())
        {
            return Ok(true);
        }
        Ok(self.obtain(&mut held).await?.secret() != rejected.secret())
    }

    /// Calls the source and keeps its token.
    async fn obtain(&self, held: &mut Option<Held>) -> Result<AccessToken, ClientError> {
        *held = None;
        let response = self.source.access_token().await?;
        if !response.is_bearer() {
            return Err(ClientError::UnsupportedTokenType);
        }
        let now = SystemClock::new().now();
        let renew_at = response.expires_in.map(|seconds| {
            let lifetime = Duration::from_secs(seconds);
            now.saturating_add(lifetime.saturating_sub(renewal_margin(lifetime)))
        });
        *held = Some(Held {
            token: response.access_token.clone(),
            renew_at,
        });
        Ok(response.access_token)
    }
}
