//! What is done for all who share a store, and goes on when the one that wanted it has given up.

use std::sync::Arc;

use crate::{
    Authorizer, ClientError, CredentialStore, ResourceToken, StartUrl, StoreError,
    resource_challenge::ResourceChallenge, store::noticed,
};

/// The first token of the store that will do.
pub(super) fn stored(
    authorizer: &Authorizer,
    start: &StartUrl,
    will_do: impl Fn(&ResourceToken) -> bool,
) -> Result<Option<Arc<ResourceToken>>, ClientError> {
    loop {
        // Each entry that cannot be understood is put aside, so that this ends.
        if let Some(tokens) = noticed(authorizer.store().tokens(start).map(Some))? {
            return Ok(tokens.into_iter().find(will_do).map(Arc::new));
        }
    }
}

/// Asks for a token, alone among all who share the store, and writes it down; or takes another's that will do.
pub(super) async fn obtain(
    authorizer: Arc<Authorizer>,
    start: StartUrl,
    challenge: ResourceChallenge,
    before: Option<Arc<ResourceToken>>,
    will_do: impl Fn(&ResourceToken) -> bool + Send,
) -> Result<Arc<ResourceToken>, ClientError> {
    let store = authorizer.store();
    let _alone = store.lock_sign_in(&start).await?;
    if let Some(other) = stored(&authorizer, &start, &will_do)? {
        return Ok(other);
    }
    let token = Arc::new(authorizer.obtain(&start, &challenge, before.as_deref()).await?);
    // The token is there, even if the store cannot take it.
    noted(match store.lock_token(&token).await {
        Ok(entry) => entry.write(&token),
        Err(error) => Err(error),
    });
    // The resource has another authorization server now, or calls itself otherwise. What was obtained for another URL
    // stays.
    let is_replaced = |before: &ResourceToken| {
        before.start_url().is_none_or(|own| *own == start) && !CredentialStore::share_entry(before, &token)
    };
    if let Some(before) = before.filter(|before| is_replaced(before)) {
        noted(match store.lock_token(&before).await {
            Ok(entry) => entry.remove(),
            Err(error) => Err(error),
        });
    }
    Ok(token)
}

/// What came of a refresh.
pub(super) enum Refreshed {
    Newer(Arc<ResourceToken>),
    /// The server refuses it for good; this is what is left.
    Dead(Arc<ResourceToken>),
}

/// Refreshes a token, alone among all who share the store, and writes the next one down; or takes another's.
pub(super) async fn refresh(
    authorizer: Arc<Authorizer>,
    start: StartUrl,
    token: Arc<ResourceToken>,
) -> Result<Refreshed, ClientError> {
    let entry = authorizer.store().lock_token(&token).await?;
    let Some(stored) = noticed(entry.read())? else {
        // A sign-out removed the entry. A refresh would undo it.
        return Ok(Refreshed::Dead(Arc::new(token.without_refresh())));
    };
    let stored = Some(Arc::new(stored)).filter(|stored| !stored.is_same(&token));
    if let Some(stored) = &stored
        && !stored.is_due(authorizer.clock().now())
    {
        return Ok(Refreshed::Newer(stored.clone()));
    }
    let latest = stored.as_ref().unwrap_or(&token);
    // A refresh token may work once. It is not spent unless its successor can be written down.
    entry.check_writable()?;
    match authorizer.refresh(&start, latest).await {
        Ok(newer) => {
            noted(entry.write(&newer));
            Ok(Refreshed::Newer(Arc::new(newer)))
        }
        Err(error) if is_dead(&error) => {
            noted(entry.remove());
            Ok(Refreshed::Dead(Arc::new(latest.without_refresh())))
        }
        Err(error) => Err(error),
    }
}

/// Logs what the store could not do, for a token that is good without it.
fn noted(stored: Result<(), StoreError>) {
    if let Err(error) = stored {
        tracing::warn!(reason = error.code(), "{error}");
    }
}

/// The refresh token will never work again, or not for this client.
fn is_dead(error: &ClientError) -> bool {
    match error {
        ClientError::TokenRequest(error) => {
            matches!(error.error.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client")
        }
        ClientError::NoRegistration { .. } => true,
        _ => false,
    }
}
