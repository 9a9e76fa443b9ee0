//! [`TokenManager`]: keeps the token of one resource valid.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use portcullis_discovery::SentSecrets;
use portcullis_metadata::{AccessToken, Clock, ResourceUri, Scopes, SystemClock};
use tokio::sync::Mutex;

use crate::{
    AccessTokenSource, Authorizer, ClientError, ResourceToken, StartUrl, StoreError,
    resource_challenge::ResourceChallenge,
};

mod external_tokens;
mod forget_client;
mod refreshes;
mod renewal;
mod request_authorization;
mod scoped;
mod sign_out;
mod step_up;

pub use request_authorization::RequestAuthorization;
pub use sign_out::SignOut;

use external_tokens::ExternalTokens;
use refreshes::Refreshes;
use renewal::{Refreshed, obtain, refresh, stored};

/// Keeps the token for one resource: reads it from the store, refreshes it before it expires,
/// renews it when the resource rejects it, and requests more scopes when the resource requires
/// them.
///
/// If several requests need a token at the same time, one obtains it and the others wait; so do
/// other processes with the same store. A refreshed token never replaces a newer one.
pub struct TokenManager {
    start: StartUrl,
    source: Source,
    held: RwLock<Held>,
    /// Held while a token is obtained, refreshed or removed.
    renewing: Mutex<()>,
    refreshes: Arc<Refreshes>,
    sent_secrets: SentSecrets,
}

/// The source of tokens.
enum Source {
    /// The authorizer and its store.
    Authorizer(Arc<Authorizer>),
    /// The caller provided one token.
    Given(AccessToken),
    /// The caller's source obtains them.
    External(ExternalTokens),
    /// There are no tokens.
    Nothing,
}

/// What is known in memory.
#[derive(Default)]
struct Held {
    token: Option<Arc<ResourceToken>>,
    /// Scopes that were requested in a step-up and not granted.
    denied: Scopes,
}

impl TokenManager {
    /// Creates a token manager that uses the authorizer and its store.
    pub fn new(start: StartUrl, authorizer: Arc<Authorizer>) -> Self {
        Self::from(start, Source::Authorizer(authorizer))
    }

    /// Creates a token manager with a token that the caller obtained, for example from the
    /// environment. The token is sent as a bearer token where [`RequestAuthorization`] permits it,
    /// and is never refreshed or renewed.
    pub fn with_access_token(start: StartUrl, token: AccessToken) -> Self {
        Self::from(start, Source::Given(token))
    }

    /// Creates a token manager for tokens that `source` obtains. They are sent as bearer tokens
    /// where [`RequestAuthorization`] permits it, and kept in memory. After a 401 the source is
    /// called once more; if it returns the same token, the 401 is final.
    pub fn with_source(start: StartUrl, source: Arc<dyn AccessTokenSource>) -> Self {
        Self::from(start, Source::External(ExternalTokens::new(source)))
    }

    /// Creates a token manager without tokens, for resources that require none or use other
    /// credentials.
    pub fn unauthenticated(start: StartUrl) -> Self {
        Self::from(start, Source::Nothing)
    }

    fn from(start: StartUrl, source: Source) -> Self {
        let sent_secrets = match &source {
            Source::Authorizer(authorizer) => authorizer.sent_secrets().clone(),
            _ => SentSecrets::new(),
        };
        let (held, renewing, refreshes) = Default::default();
        Self {
            start,
            source,
            held,
            renewing,
            refreshes,
            sent_secrets,
        }
    }

    /// The URL for which it keeps the token.
    pub fn start_url(&self) -> &StartUrl {
        &self.start
    }

    /// The secrets that were sent to authorization servers. A program that sends the token with its
    /// own HTTP library adds it ([`SentSecrets::record`]), so that neither side's errors repeat
    /// what was sent to the other.
    pub fn sent_secrets(&self) -> &SentSecrets {
        &self.sent_secrets
    }

    /// The resource of the current token, or the start URL if there is no token. Redirects must
    /// stay under it ([`ResourceRedirects`](crate::ResourceRedirects)).
    pub fn resource(&self) -> Option<ResourceUri> {
        match self.current() {
            Some(token) => Some(token.resource().clone()),
            None => self.start.resource(),
        }
    }

    /// The current token, if there is one. It may need a refresh.
    pub fn current(&self) -> Option<Arc<ResourceToken>> {
        self.held.read().token.clone()
    }

    /// Sets the current token. A token that cannot be used for this URL ([`ResourceToken::is_for`])
    /// is ignored.
    pub fn set_current(&self, token: Arc<ResourceToken>) {
        if token.is_for(&self.start) {
            self.held.write().token = Some(token);
        }
    }

    /// Returns a valid token: the current one or one from the store, refreshed if necessary. None
    /// if a token requires the user, or if this token manager has no authorizer: it then has no
    /// [`ResourceToken`].
    ///
    /// # Errors
    /// When the store cannot be used, or when a token has expired and its refresh fails for another
    /// reason than a rejection by the authorization server.
    pub async fn token(&self) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok(self.current());
        };
        authorizer.store().save_unsaved().await;
        let Some(token) = self.find_token(authorizer)? else {
            return Ok(None);
        };
        if !token.is_due(authorizer.clock().now()) {
            return Ok(Some(token));
        }
        let is_over = token.is_expired(authorizer.clock().now());
        let _one_at_a_time = match self.renewing.try_lock() {
            Ok(turn) => turn,
            // Another task renews it, and may wait for the user.
            Err(_) if !is_over => return Ok(Some(token)),
            Err(_) => self.renewing.lock().await,
        };
        let refreshed = match self
            .current()
            .filter(|current| !Arc::ptr_eq(current, &token))
        {
            Some(newer) => Ok(Some(newer)),
            None => self.refresh(authorizer, &token, None).await,
        };
        match refreshed {
            Ok(Some(newer)) => Ok(Some(newer)),
            Ok(None) => Ok((!is_over).then_some(token)),
            Err(error) if is_over => Err(error),
            // The store has logged a warning.
            Err(ClientError::Store(StoreError::NotWritable { .. })) => Ok(Some(token)),
            // The token is still valid. The next use tries again.
            Err(error) => {
                tracing::warn!(
                    reason = error.code(),
                    "an access token could not be refreshed before it expires"
                );
                Ok(Some(token))
            }
        }
    }

    /// Obtains a new token even if there is a valid one: requests a challenge from the resource,
    /// and asks the user for consent.
    ///
    /// # Errors
    /// As [`Authorizer::authorize`]; [`ClientError::NoAuthorizer`] if this token manager has no
    /// authorizer.
    pub async fn sign_in(&self) -> Result<Arc<ResourceToken>, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Err(ClientError::NoAuthorizer);
        };
        let _one_at_a_time = self.renewing.lock().await;
        // The caller wants this sign-in, not the server.
        authorizer.sign_in_limit().reset();
        let challenge = authorizer.probe(&self.start).await?;
        let before = self.find_token(authorizer)?;
        self.obtain(authorizer, &challenge, before, |_| false).await
    }

    /// Starts the authorization of one request.
    pub fn request_authorization(self: &Arc<Self>) -> RequestAuthorization {
        RequestAuthorization::new(self.clone())
    }

    /// The current token, else the first one in the store.
    fn find_token(
        &self,
        authorizer: &Arc<Authorizer>,
    ) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        if let Some(token) = self.current() {
            return Ok(Some(token));
        }
        let found = stored(authorizer, &self.start, |_| true)?;
        if let Some(token) = &found {
            self.set_current(token.clone());
        }
        Ok(found)
    }

    /// Replaces a token that the resource rejected with 401. Returns false if this token manager
    /// cannot. Fails when no other token can be obtained.
    async fn renew(
        &self,
        used: Option<&Arc<ResourceToken>>,
        challenge: &ResourceChallenge,
    ) -> Result<bool, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Ok(false);
        };
        let _one_at_a_time = self.renewing.lock().await;
        if self.is_replaced(authorizer, used) {
            return Ok(true);
        }
        if let Some(used) = used.filter(|used| used.refresh_token().is_some())
            && authorizer
                .is_listed(&self.start, challenge, used.issuer())
                .await?
            && self.refresh(authorizer, used, None).await?.is_some()
        {
            return Ok(true);
        }
        if used.is_some() {
            tracing::warn!(
                "the resource rejected the access token, which cannot be refreshed; a new one is requested"
            );
        }
        let now = authorizer.clock().now();
        let rejected = used.cloned();
        let is_newer = move |token: &ResourceToken| {
            !token.is_expired(now) && !rejected.as_ref().is_some_and(|used| token.is_same(used))
        };
        self.obtain(authorizer, challenge, used.cloned(), is_newer)
            .await?;
        Ok(true)
    }

    /// Obtains a token with the required scopes and those requested before, and keeps it. If
    /// another process has obtained an acceptable one, that is used.
    async fn obtain(
        &self,
        authorizer: &Arc<Authorizer>,
        challenge: &ResourceChallenge,
        before: Option<Arc<ResourceToken>>,
        is_acceptable: impl Fn(&ResourceToken) -> bool + Send + 'static,
    ) -> Result<Arc<ResourceToken>, ClientError> {
        let denied = self.denied_scopes();
        let asked = before
            .as_ref()
            .map_or_else(Scopes::empty, |before| before.asked().difference(&denied));
        // A task of its own, because the sign-in continues when this request is cancelled: the next
        // request finds the token.
        let task = obtain(
            authorizer.clone(),
            self.start.clone(),
            challenge.with_scopes(&asked),
            before,
            is_acceptable,
        );
        let token = tokio::spawn(task)
            .await
            .map_err(|_| ClientError::TaskEnded)??;
        self.set_current(token.clone());
        Ok(token)
    }

    /// Refreshes a token, or returns the one that another process has refreshed. None if the token
    /// cannot be refreshed, and a new authorization is necessary.
    async fn refresh(
        &self,
        authorizer: &Arc<Authorizer>,
        token: &Arc<ResourceToken>,
        scopes: Option<Scopes>,
    ) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        if token.refresh_token().is_none() {
            return Ok(None);
        }
        // A task of its own, because the caller can be cancelled, and a rotated refresh token must
        // still be stored.
        let refreshes = Arc::clone(&self.refreshes);
        let task = tokio::spawn(refresh(
            authorizer.clone(),
            self.start.clone(),
            token.clone(),
            scopes,
            refreshes,
        ));
        match task.await.map_err(|_| ClientError::TaskEnded)?? {
            Refreshed::Newer(newer) => {
                self.set_current(newer.clone());
                Ok(Some(newer))
            }
            Refreshed::Invalid(left) => {
                self.set_current(left);
                Ok(None)
            }
        }
    }

    /// Whether the token has been replaced by one that has not expired.
    fn is_replaced(&self, authorizer: &Arc<Authorizer>, used: Option<&Arc<ResourceToken>>) -> bool {
        let now = authorizer.clock().now();
        self.current().is_some_and(|current| {
            !current.is_expired(now) && !used.is_some_and(|used| Arc::ptr_eq(&current, used))
        })
    }

    /// Records that the resource accepted a request that waited for a sign-in.
    fn record_acceptance(&self) {
        if let Source::Authorizer(authorizer) = &self.source {
            authorizer.sign_in_limit().reset();
        }
    }

    /// Drops a new token that the resource rejects.
    fn forget(&self, token: &Arc<ResourceToken>) {
        let mut held = self.held.write();
        if held
            .token
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, token))
        {
            held.token = None;
        }
    }

    fn denied_scopes(&self) -> Scopes {
        self.held.read().denied.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match &self.source {
            Source::Authorizer(authorizer) => authorizer.clock().clone(),
            _ => Arc::new(SystemClock::new()),
        }
    }
}

impl fmt::Debug for TokenManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenManager")
            .field("token", &self.current())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
