//! [`AccessTokenSource`]: access tokens that another program or library obtains.

use std::{fmt, sync::Arc, time::Duration};

use portcullis_discovery::BoxFuture;
use portcullis_metadata::{AccessToken, Clock, SystemClock, TokenResponse, UnixTime};
use tokio::sync::Mutex;

use crate::{ClientError, token::resource_token::renewal_margin};

/// A source of access tokens that this crate does not obtain.
pub trait AccessTokenSource: Send + Sync + 'static {
    /// Obtains a bearer token. It is called for the first request, shortly before the token expires, and once after the
    /// resource rejects the token.
    ///
    /// # Errors
    /// When there is no token; the message has the cause without the token.
    fn access_token(&self) -> BoxFuture<'_, Result<TokenResponse, AccessTokenSourceError>>;
}

/// Why a source provides no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessTokenSourceError(String);

impl AccessTokenSourceError {
    /// An error with this cause. It is shown to the user and must not contain a token.
    pub fn new(cause: impl Into<String>) -> Self {
        Self(cause.into())
    }
}

/// A source and its latest token.
pub(super) struct ExternalTokens {
    source: Arc<dyn AccessTokenSource>,
    held: Mutex<Option<Held>>,
}

#[derive(Clone)]
struct Held {
    token: AccessToken,
    /// When the next token is obtained. None if the source does not return the lifetime.
    renew_at: Option<UnixTime>,
}

impl ExternalTokens {
    pub(super) fn new(source: Arc<dyn AccessTokenSource>) -> Self {
        Self { source, held: Mutex::default() }
    }

    /// The held token, or a new one if it expires soon.
    pub(super) async fn token(&self) -> Result<AccessToken, ClientError> {
        let mut held = self.held.lock().await;
        let now = SystemClock::new().now();
        if let Some(held) = held.as_ref().filter(|held| held.renew_at.is_none_or(|at| now < at)) {
            return Ok(held.token.clone());
        }
        self.obtain(&mut held).await
    }

    /// Replaces a token that the resource rejected. Returns false if the source returns the same token again.
    pub(super) async fn replace(&self, rejected: &AccessToken) -> Result<bool, ClientError> {
        let mut held = self.held.lock().await;
        if held.as_ref().is_some_and(|held| held.token.secret() != rejected.secret()) {
            return Ok(true);
        }
        Ok(self.obtain(&mut held).await?.secret() != rejected.secret())
    }

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
        *held = Some(Held { token: response.access_token.clone(), renew_at });
        Ok(response.access_token)
    }
}

impl fmt::Debug for ExternalTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExternalTokens")
    }
}
