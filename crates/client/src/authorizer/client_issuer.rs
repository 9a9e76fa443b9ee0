//! Binds the pre-registered client of the settings to one authorization server.
//!
//! The resource names the authorization server. Without the binding, a resource that is compromised
//! later could name another one, which would get the client's secret, an assertion, or a code
//! together with its verifier.

use portcullis_metadata::Issuer;

use super::Authorizer;
use crate::{ClientError, ClientInformation, StartUrl, StoreError};

impl Authorizer {
    /// The authorization server to which the client of the settings is bound. `None` if there is no
    /// such client, it was not used yet, or the settings name the authorization server. Fails when
    /// the store cannot be read.
    pub(super) fn client_issuer(&self, start: &StartUrl) -> Result<Option<Issuer>, ClientError> {
        let Some(client) = &self.settings.client else {
            return Ok(None);
        };
        if self.settings.authorization_server.is_some() {
            return Ok(None);
        }
        if let Some(bound) = self.bound.lock().clone() {
            return Ok(Some(bound));
        }
        let stored = self.store().client_issuer(&client.client_id, start)?;
        Ok(stored.map_or_else(
            || self.issuer_of_tokens(client, start),
            |issuer| Ok(Some(issuer)),
        )?)
    }

    /// Binds the client to this authorization server, in the store and in memory, before anything
    /// is sent there. If the settings name this authorization server, that replaces an earlier
    /// binding. Fails with [`ClientError::ClientOfOtherServer`] when the client is bound to another
    /// one; [`ClientError::Store`].
    pub(super) async fn bind_client(
        &self,
        client: &ClientInformation,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<(), ClientError> {
        let is_chosen = self.settings.authorization_server.as_ref() == Some(issuer);
        let in_memory = self.bound.lock().clone();
        check(client, in_memory.filter(|_| !is_chosen).as_ref(), issuer)?;

        let entry = self
            .store()
            .lock_client_issuer(&client.client_id, start)
            .await?;
        let stored = match entry.read() {
            // The choice also repairs a damaged entry.
            Err(StoreError::Io { .. }) if is_chosen => None,
            stored => stored?,
        };
        if stored.as_ref() != Some(issuer) {
            if !is_chosen {
                let known = stored.map_or_else(
                    || self.issuer_of_tokens(client, start),
                    |issuer| Ok(Some(issuer)),
                )?;
                check(client, known.as_ref(), issuer)?;
            }
            entry.write(issuer)?;
            if !is_chosen && entry.is_unsaved() {
                tracing::warn!(
                    issuer = issuer.as_str(),
                    "the authorization server of the client cannot be stored, so that only this process knows it; name it with \
                     --authorization-server"
                );
            }
        }
        *self.bound.lock() = Some(issuer.clone());
        Ok(())
    }

    /// The issuer of a stored token that was issued to the client. Tokens of earlier versions have
    /// no stored binding.
    fn issuer_of_tokens(
        &self,
        client: &ClientInformation,
        start: &StartUrl,
    ) -> Result<Option<Issuer>, StoreError> {
        let mut tokens = self.store().tokens(start)?.into_iter();
        let token = tokens.find(|token| {
            token.client_id() == Some(&client.client_id)
                && token.start_url().is_none_or(|own| own == start)
        });
        Ok(token.map(|token| token.issuer().clone()))
    }
}

/// Rejects every authorization server but the known one.
fn check(
    client: &ClientInformation,
    known: Option<&Issuer>,
    issuer: &Issuer,
) -> Result<(), ClientError> {
    match known.filter(|known| *known != issuer) {
        Some(known) => Err(other_server(client, known, issuer)),
        None => Ok(()),
    }
}

/// The error for an authorization server that is not that of the client.
pub(super) fn other_server(
    client: &ClientInformation,
    known: &Issuer,
    named: &Issuer,
) -> ClientError {
    ClientError::ClientOfOtherServer {
        client_id: client.client_id.clone(),
        known: known.clone(),
        named: named.clone(),
    }
}
