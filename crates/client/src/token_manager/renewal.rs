//! Obtains and refreshes tokens under the locks of the store, independently of the request that
//! needs them.

use std::{pin::pin, sync::Arc, time::Duration};

use portcullis_metadata::Scopes;
use tokio::time::timeout;

use super::Refreshes;
use crate::{
    Authorizer, ClientError, CredentialStore, EndedSignIn, ResourceToken, StartUrl, StoreError,
    resource_challenge::ResourceChallenge, store::ignore_corrupted,
};

/// The wait for another sign-in after which the user learns about it.
const WAIT_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// The tokens in the store that can be used for `start`, without corrupted entries.
pub(super) fn all_stored(
    authorizer: &Authorizer,
    start: &StartUrl,
) -> Result<Vec<ResourceToken>, ClientError> {
    loop {
        // Each corrupted entry is quarantined, so the loop ends.
        if let Some(tokens) = ignore_corrupted(authorizer.store().tokens(start).map(Some))? {
            return Ok(tokens);
        }
    }
}

/// The first token in the store that `is_acceptable` accepts.
pub(super) fn stored(
    authorizer: &Authorizer,
    start: &StartUrl,
    is_acceptable: impl Fn(&ResourceToken) -> bool,
) -> Result<Option<Arc<ResourceToken>>, ClientError> {
    Ok(all_stored(authorizer, start)?
        .into_iter()
        .find(is_acceptable)
        .map(Arc::new))
}

/// Obtains a token under the store's lock and stores it; or returns one that another process has
/// stored.
pub(super) async fn obtain(
    authorizer: Arc<Authorizer>,
    start: StartUrl,
    challenge: ResourceChallenge,
    before: Option<Arc<ResourceToken>>,
    is_acceptable: impl Fn(&ResourceToken) -> bool + Send,
) -> Result<Arc<ResourceToken>, ClientError> {
    let store = authorizer.store();
    let _lock = lock_sign_in(&authorizer, &start).await?;
    if let Some(other) = stored(&authorizer, &start, &is_acceptable)? {
        return Ok(other);
    }
    let token = Arc::new(
        authorizer
            .obtain(&start, &challenge, before.as_deref())
            .await?,
    );
    // The token is valid even if it cannot be stored.
    log_failure(match store.lock_token(&token).await {
        Ok(entry) => entry.write(&token),
        Err(error) => Err(error),
    });
    // The resource now has another authorization server or another identifier. A token for another
    // URL is kept.
    let is_replaced = |before: &ResourceToken| {
        before.start_url().is_none_or(|own| *own == start)
            && !CredentialStore::share_entry(before, &token)
    };
    if let Some(before) = before.filter(|before| is_replaced(before)) {
        log_failure(match store.lock_token(&before).await {
            Ok(entry) => entry.remove(),
            Err(error) => Err(error),
        });
    }
    Ok(token)
}

/// Locks the sign-in. Another sign-in can hold the lock as long as its user takes.
async fn lock_sign_in(
    authorizer: &Authorizer,
    start: &StartUrl,
) -> Result<Box<dyn Send>, StoreError> {
    let mut locked = pin!(authorizer.store().lock_sign_in(start));
    if let Ok(locked) = timeout(WAIT_NOTICE_DELAY, &mut locked).await {
        return locked;
    }
    if let Some(user) = authorizer.interaction() {
        user.waiting_for_other_sign_in(start);
    }
    locked.await
}

/// The result of a refresh.
pub(super) enum Refreshed {
    Newer(Arc<ResourceToken>),
    /// The server rejects the refresh token permanently. The access token can still be valid.
    Invalid(Arc<ResourceToken>),
}

/// Refreshes a token under the store's lock and stores the result; or returns one that another
/// process has stored. With scopes, these are requested, and the result can still lack them.
pub(super) async fn refresh(
    authorizer: Arc<Authorizer>,
    start: StartUrl,
    token: Arc<ResourceToken>,
    scopes: Option<Scopes>,
    refreshes: Arc<Refreshes>,
) -> Result<Refreshed, ClientError> {
    let entry = authorizer.store().lock_token(&token).await?;
    let Some(stored) = ignore_corrupted(entry.read())? else {
        // A sign-out removed the entry. A refresh would undo it.
        return Ok(Refreshed::Invalid(Arc::new(token.without_refresh())));
    };
    let stored = Some(Arc::new(stored)).filter(|stored| !stored.is_same(&token));
    let has_scopes = |stored: &ResourceToken| {
        scopes
            .as_ref()
            .is_none_or(|scopes| stored.missing_scopes(scopes).is_empty())
    };
    if let Some(stored) = &stored
        && !stored.is_due(authorizer.clock().now())
        && has_scopes(stored)
    {
        return Ok(Refreshed::Newer(stored.clone()));
    }
    let latest = stored.as_ref().unwrap_or(&token);
    // A refresh token may work only once, so it is used only if the result can be stored.
    entry.check_writable()?;
    let _in_progress = refreshes.begin().await?;
    match authorizer.refresh(&start, latest, scopes.as_ref()).await {
        Ok(newer) => {
            log_failure(entry.write(&newer));
            Ok(Refreshed::Newer(Arc::new(newer)))
        }
        Err(error) => {
            let Some(ended) = EndedSignIn::of_refresh(&start, latest, &error) else {
                return Err(error);
            };
            if let Some(user) = authorizer.interaction() {
                user.sign_in_ended(&ended);
            }
            log_failure(entry.remove());
            Ok(Refreshed::Invalid(Arc::new(latest.without_refresh())))
        }
    }
}

/// Logs a store error after which the token can still be used.
fn log_failure(stored: Result<(), StoreError>) {
    if let Err(error) = stored {
        tracing::warn!(reason = error.code(), "{error}");
    }
}
