//! [`TokenManager`]: keeps the token of one resource valid.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use portcullis_metadata::{AccessToken, Clock, ResourceUri, Scopes, SystemClock};
use tokio::sync::Mutex;

use crate::{
    Authorizer, ClientError, ResourceToken, Revocation, StartUrl, StoreError, resource_challenge::ResourceChallenge,
    store::noticed,
};

mod access_token_source;
mod forget_client;
mod renewal;
mod request_authorization;

pub use access_token_source::{AccessTokenSource, AccessTokenSourceError};
pub use request_authorization::RequestAuthorization;

use access_token_source::Sourced;
use renewal::{Refreshed, obtain, refresh, stored};

/// Keeps the token for one resource: from the store, refreshed ahead of its end, got anew when the resource refuses it,
/// with more scopes when the resource wants more.
///
/// Of the requests that find at the same time that there is no token, one gets it and the others wait for it; so do
/// other processes on the same store. A refreshed token never takes the place of a newer one.
pub struct TokenManager {
    start: StartUrl,
    source: Source,
    held: RwLock<Held>,
    renewing: Mutex<()>,
}

/// Where tokens come from.
enum Source {
    Authorizer(Arc<Authorizer>),
    /// The caller has one, which is used in place of a flow.
    Given(AccessToken),
    /// The caller obtains them.
    Sourced(Sourced),
    Nothing,
}

#[derive(Default)]
struct Held {
    token: Option<Arc<ResourceToken>>,
    /// Scopes that were asked for in a step-up, and not granted.
    refused: Scopes,
}

/// What became of a sign-out: of several tokens, of the one that the authorization server did least for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignOut {
    /// There was no token.
    NotSignedIn,
    /// The token is forgotten, and the authorization server revoked it.
    Revoked,
    /// The token is forgotten, and the authorization server revoked the refresh token. Access tokens of this kind it
    /// revokes none, so that this one lives until its end.
    RefreshTokenRevoked,
    /// The token is forgotten here. The authorization server revokes none, so that it lives until its end.
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
    /// A token_manager that looks into the authorizer's store first.
    pub fn new(start: StartUrl, authorizer: Arc<Authorizer>) -> Self {
        Self::from(start, Source::Authorizer(authorizer))
    }

    /// A token_manager of a token that the caller got elsewhere, from the environment for instance. It is sent to the origin
    /// of `start` alone, as a bearer token, and is never refreshed: when the resource refuses it, that stands.
    pub fn with_access_token(start: StartUrl, token: AccessToken) -> Self {
        Self::from(start, Source::Given(token))
    }

    /// A token manager for tokens that `source` obtains, in place of a flow. They are sent to the origin of `start` alone, as
    /// bearer tokens, and kept in memory. After a 401 the source is asked once more; if it gives the same token, the 401
    /// stands.
    pub fn with_source(start: StartUrl, source: Arc<dyn AccessTokenSource>) -> Self {
        Self::from(start, Source::Sourced(Sourced::new(source)))
    }

    /// A token_manager without a token and without a way to get one, for resources that want none, or other credentials.
    pub fn unauthenticated(start: StartUrl) -> Self {
        Self::from(start, Source::Nothing)
    }

    fn from(start: StartUrl, source: Source) -> Self {
        Self { start, source, held: RwLock::default(), renewing: Mutex::default() }
    }

    /// The URL that it keeps the token for.
    pub fn start_url(&self) -> &StartUrl {
        &self.start
    }

    /// The resource of the token that is in use, or the start URL if there is no token. Redirects must stay under it
    /// ([`ResourceRedirects`](crate::ResourceRedirects)).
    pub fn resource(&self) -> Option<ResourceUri> {
        match self.current() {
            Some(token) => Some(token.resource().clone()),
            None => self.start.resource(),
        }
    }

    /// The token that is in use, where there is one. It may be due for a refresh.
    pub fn current(&self) -> Option<Arc<ResourceToken>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).token.clone()
    }

    /// Uses a token that was got before. One that may not be used for this URL ([`ResourceToken::is_for`]) is ignored.
    pub fn set_current(&self, token: Arc<ResourceToken>) {
        if token.is_for(&self.start) {
            self.held.write().unwrap_or_else(PoisonError::into_inner).token = Some(token);
        }
    }

    /// A token to use now: the one in use or the store's, refreshed when it is due. None when there is none that could
    /// be used without asking a person.
    ///
    /// # Errors
    /// When the store cannot be used, or when a token has ended and its refresh fails for another reason than that the
    /// authorization server refuses it.
    pub async fn token(&self) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else { return Ok(self.current()) };
        authorizer.store().save_unsaved().await;
        let Some(token) = self.look(authorizer)? else { return Ok(None) };
        if !token.is_due(authorizer.clock().now()) {
            return Ok(Some(token));
        }
        let is_over = token.is_expired(authorizer.clock().now());
        let _one_at_a_time = match self.renewing.try_lock() {
            Ok(turn) => turn,
            // Somebody is at it, and may have to wait for a person.
            Err(_) if !is_over => return Ok(Some(token)),
            Err(_) => self.renewing.lock().await,
        };
        let refreshed = match self.current().filter(|current| !Arc::ptr_eq(current, &token)) {
            Some(newer) => Ok(Some(newer)),
            None => self.refresh(authorizer, &token).await,
        };
        match refreshed {
            Ok(Some(newer)) => Ok(Some(newer)),
            Ok(None) => Ok((!is_over).then_some(token)),
            Err(error) if is_over => Err(error),
            // The store has warned, once.
            Err(ClientError::Store(StoreError::NotWritable { .. })) => Ok(Some(token)),
            // It was early, and is tried again at the next use.
            Err(error) => {
                tracing::warn!(reason = error.code(), "an access token could not be refreshed ahead of its end");
                Ok(Some(token))
            }
        }
    }

    /// Gets a new token, whatever there is: asks the resource for its challenge and the person for consent.
    ///
    /// # Errors
    /// As [`Authorizer::authorize`]; [`ClientError::NotChallenged`] also where this token_manager cannot get tokens.
    pub async fn sign_in(&self) -> Result<Arc<ResourceToken>, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else {
            return Err(ClientError::NotChallenged { status: http::StatusCode::OK });
        };
        let _one_at_a_time = self.renewing.lock().await;
        let challenge = authorizer.probe(&self.start).await?;
        let before = self.look(authorizer)?;
        self.obtain(authorizer, &challenge, before, |_| false).await
    }

    /// Forgets the token here and in the store, and has the authorization server revoke it where it does that; so with
    /// every other token that could be used for this URL, such as one that was obtained for a path below it. The
    /// registration of the client is kept.
    ///
    /// # Errors
    /// When the store cannot be used, and when a revocation fails: the tokens are forgotten then too.
    pub async fn sign_out(&self) -> Result<SignOut, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else { return Ok(SignOut::NotSignedIn) };
        let _one_at_a_time = self.renewing.lock().await;
        let mut forgotten = Vec::new();
        while let Some(token) = self.look(authorizer)? {
            let entry = authorizer.store().lock_token(&token).await?;
            let latest = noticed(entry.read())?.map_or(token, Arc::new);
            entry.remove()?;
            *self.held.write().unwrap_or_else(PoisonError::into_inner) = Held::default();
            forgotten.push(latest);
        }
        let mut outcome = Ok(SignOut::NotSignedIn);
        for token in forgotten {
            let revoked = authorizer.revoke(&self.start, &token).await.map(SignOut::from);
            outcome = match (outcome, revoked) {
                (Err(error), _) | (_, Err(error)) => Err(error),
                (Ok(one), Ok(other)) => Ok(one.max(other)),
            };
        }
        outcome
    }

    /// One request, and what to do when the resource refuses it.
    pub fn request_authorization(self: &Arc<Self>) -> RequestAuthorization {
        RequestAuthorization::new(self.clone())
    }

    /// The token in use, else the store's first.
    fn look(&self, authorizer: &Arc<Authorizer>) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        if let Some(token) = self.current() {
            return Ok(Some(token));
        }
        let found = stored(authorizer, &self.start, |_| true)?;
        if let Some(token) = &found {
            self.set_current(token.clone());
        }
        Ok(found)
    }

    /// A token in place of the one that the resource refused with 401.
    async fn renew(
        &self,
        used: Option<&Arc<ResourceToken>>,
        challenge: &ResourceChallenge,
    ) -> Result<bool, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else { return Ok(false) };
        let _one_at_a_time = self.renewing.lock().await;
        if self.is_replaced(authorizer, used) {
            return Ok(true);
        }
        if let Some(used) = used.filter(|used| used.refresh_token().is_some())
            && authorizer.is_listed(&self.start, challenge, used.issuer()).await?
            && self.refresh(authorizer, used).await?.is_some()
        {
            return Ok(true);
        }
        let (now, refused) = (authorizer.clock().now(), used.cloned());
        let is_newer = move |token: &ResourceToken| {
            !token.is_expired(now) && !refused.as_ref().is_some_and(|used| token.is_same(used))
        };
        self.obtain(authorizer, challenge, used.cloned(), is_newer).await?;
        Ok(true)
    }

    /// A token with more scopes, in place of one that the resource refused with 403. False when there is no use in
    /// asking: they were refused before, or the token has them.
    async fn step_up(
        &self,
        used: Option<&Arc<ResourceToken>>,
        challenge: &ResourceChallenge,
        missing: &Scopes,
    ) -> Result<bool, ClientError> {
        let Source::Authorizer(authorizer) = &self.source else { return Ok(false) };
        let wanted = missing.clone();
        let covers = move |token: &ResourceToken| token.scopes().is_some_and(|granted| granted.covers(&wanted));
        if authorizer.is_final() || !authorizer.may_request(missing) || used.is_some_and(|used| covers(used)) {
            return Ok(false);
        }
        let _one_at_a_time = self.renewing.lock().await;
        if self.is_replaced(authorizer, used) && self.current().is_some_and(|current| covers(&current)) {
            return Ok(true);
        }
        if !self.refused().intersection(missing).is_empty() {
            return Ok(false);
        }
        let (now, before, serves) = (authorizer.clock().now(), self.current(), covers.clone());
        let serves = move |token: &ResourceToken| !token.is_expired(now) && serves(token);
        match self.obtain(authorizer, &challenge.with_scopes(missing), before.clone(), serves).await {
            Ok(token) if covers(&token) => Ok(true),
            Ok(token) => {
                self.refuse(without(missing, token.scopes()));
                Ok(false)
            }
            Err(error) => {
                if is_refusal(&error) {
                    self.refuse(without(missing, before.as_ref().and_then(|before| before.scopes())));
                }
                Err(error)
            }
        }
    }

    /// Asks for a token for what is demanded and what was asked for before, and keeps it. Another process's token that
    /// will do is taken in its place.
    async fn obtain(
        &self,
        authorizer: &Arc<Authorizer>,
        challenge: &ResourceChallenge,
        before: Option<Arc<ResourceToken>>,
        will_do: impl Fn(&ResourceToken) -> bool + Send + 'static,
    ) -> Result<Arc<ResourceToken>, ClientError> {
        let refused = self.refused();
        let asked = before.as_ref().map_or_else(Scopes::empty, |before| without(before.asked(), Some(&refused)));
        // A person who is at it is not stopped because a request's time is over: the next one finds the token.
        let under_way = obtain(authorizer.clone(), self.start.clone(), challenge.with_scopes(&asked), before, will_do);
        let token = tokio::spawn(under_way).await.map_err(|_| ClientError::TaskEnded)??;
        self.set_current(token.clone());
        Ok(token)
    }

    /// Refreshes a token, or takes the one that another process has refreshed by now. None when the token cannot be
    /// refreshed, and only a new authorization helps.
    async fn refresh(
        &self,
        authorizer: &Arc<Authorizer>,
        token: &Arc<ResourceToken>,
    ) -> Result<Option<Arc<ResourceToken>>, ClientError> {
        if token.refresh_token().is_none() {
            return Ok(None);
        }
        // Whoever waits for it may give up. What the server rotates has to be written down all the same.
        let under_way = tokio::spawn(refresh(authorizer.clone(), self.start.clone(), token.clone()));
        match under_way.await.map_err(|_| ClientError::TaskEnded)?? {
            Refreshed::Newer(newer) => {
                self.set_current(newer.clone());
                Ok(Some(newer))
            }
            Refreshed::Dead(left) => {
                self.set_current(left);
                Ok(None)
            }
        }
    }

    /// Whether there is another token by now, one that has not ended.
    fn is_replaced(&self, authorizer: &Arc<Authorizer>, used: Option<&Arc<ResourceToken>>) -> bool {
        let now = authorizer.clock().now();
        self.current()
            .is_some_and(|current| !current.is_expired(now) && !used.is_some_and(|used| Arc::ptr_eq(&current, used)))
    }

    /// Takes a token out of use that the resource refuses although it is new.
    fn forget(&self, token: &Arc<ResourceToken>) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.token.as_ref().is_some_and(|held| Arc::ptr_eq(held, token)) {
            held.token = None;
        }
    }

    fn refused(&self) -> Scopes {
        self.held.read().unwrap_or_else(PoisonError::into_inner).refused.clone()
    }

    fn refuse(&self, scopes: Scopes) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.refused = held.refused.union(&scopes);
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match &self.source {
            Source::Authorizer(authorizer) => authorizer.clock().clone(),
            _ => Arc::new(SystemClock::new()),
        }
    }
}

/// The person or the server does not want to grant the scopes.
fn is_refusal(error: &ClientError) -> bool {
    let error = match error {
        ClientError::TokenRequest(error) | ClientError::Redirect(crate::RedirectError::Denied(error)) => error,
        _ => return false,
    };
    matches!(error.error.as_str(), "access_denied" | "invalid_scope")
}

fn without(scopes: &Scopes, taken: Option<&Scopes>) -> Scopes {
    let left = scopes.iter().filter(|name| !taken.is_some_and(|taken| taken.contains(name)));
    // They are names of a set already.
    Scopes::from_names(left).unwrap_or_default()
}

impl fmt::Debug for TokenManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenManager").field("token", &self.current()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
