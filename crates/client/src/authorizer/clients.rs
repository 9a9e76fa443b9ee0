//! Selects or registers the client for an authorization server.

use std::sync::PoisonError;

use portcullis_metadata::{ClientIdUrl, Issuer, Scopes};

use super::Authorizer;
use crate::{
    ClientAuthentication, ClientCredentials, ClientError, ClientInformation, Interaction, NewRegistration,
    authorization::server::Server,
    registration::credentials::Registered,
    registration::dynamic::{self, Registration},
    store::{ClientEntry, ignore_corrupted},
};

/// The client to use, and where to forget it if the authorization server no longer knows it.
pub(super) struct Client {
    pub(super) credentials: ClientCredentials,
    kept: Option<StoredAs>,
    /// The registration of an earlier sign-in, if the client uses one.
    reused: Option<Registered>,
}

impl Client {
    /// The registration of an earlier sign-in, which the server may have forgotten.
    pub(super) fn reused(&self) -> Option<&Registered> {
        self.reused.as_ref()
    }
}

/// The store entry of a client that does not come from the settings.
#[derive(Clone, Copy)]
enum StoredAs {
    Registered,
    ByHand,
}

impl Authorizer {
    /// Selects the client for this authorization server: from the settings, entered earlier by the user, the client's
    /// metadata document, a registration, or entered by the user now.
    pub(super) async fn client(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        registration: &Registration<'_>,
    ) -> Result<Client, ClientError> {
        if let Some(credentials) = self.configured_client(&server.issuer)? {
            return Ok(Client { credentials, kept: None, reused: None });
        }
        let by_hand = self.store().lock_client_by_hand(&server.issuer, registration.only_for).await?;
        if let Some(known) =
            ignore_corrupted(by_hand.read(&server.issuer))?.filter(|_| !self.settings.fresh_registration)
        {
            return Ok(Client { credentials: known.credentials()?, kept: Some(StoredAs::ByHand), reused: None });
        }
        drop(by_hand);
        if let Some(document) = self.settings.client_id_url.as_ref().filter(|_| server.takes_client_documents) {
            return Ok(Client { credentials: documented(&server.issuer, document), kept: None, reused: None });
        }
        let redirect_uri = registration.redirect_uri;
        let entry = self.store().lock_client(&server.issuer, redirect_uri, registration.only_for).await?;
        let known = ignore_corrupted(entry.read(&server.issuer))?;
        let method = self.settings.token_auth_method;
        let serves = |known: &Registered| {
            known.serves(redirect_uri.as_str(), self.clock.now()) && known.authenticates_by(method)
        };
        let known = known.filter(serves);
        let may_reuse =
            |known: &&Registered| known.may_ask_for(registration.needed) && !self.settings.fresh_registration;
        if let Some(known) = known.as_ref().filter(may_reuse) {
            let (credentials, reused) = (known.credentials()?, Some(known.clone()));
            return Ok(Client { credentials, kept: Some(StoredAs::Registered), reused });
        }
        if let Some(updated) = self.with_scopes(interaction, server, known.as_ref(), registration).await? {
            let credentials = updated.credentials()?;
            entry.write(&updated)?;
            return Ok(Client { credentials, kept: Some(StoredAs::Registered), reused: None });
        }
        if let Some(endpoint) = &server.registration_endpoint {
            // Includes the scopes requested earlier, so that sign-ins with alternating scopes share one registration.
            let scopes = known.map_or_else(Scopes::empty, |known| known.asked).union(registration.scopes);
            let registration = Registration { scopes: &scopes, ..*registration };
            let registered = dynamic::register(&*self.fetch, server, endpoint, &registration).await?;
            let credentials = registered.credentials()?;
            entry.write(&registered)?;
            return Ok(Client { credentials, kept: Some(StoredAs::Registered), reused: None });
        }
        drop(entry);
        self.ask(interaction, &server.issuer, registration).await
    }

    /// Returns the known registration with the missing scopes added. `None` if it lacks none or the server does not update
    /// it; a new client is then registered, and the server's session with the old one ends. In a step-up, the user is asked
    /// before.
    async fn with_scopes(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        known: Option<&Registered>,
        registration: &Registration<'_>,
    ) -> Result<Option<Registered>, ClientError> {
        let lacks_scopes = |known: &&Registered| !known.may_ask_for(registration.needed);
        let Some(known) = known.filter(lacks_scopes).filter(|_| !self.settings.fresh_registration) else {
            return Ok(None);
        };
        let scopes = known.asked.union(registration.scopes);
        if let Some(updated) = self.updated_registration(server, known, &scopes).await {
            tracing::info!(%scopes, "the registration of the client was updated");
            return Ok(Some(updated));
        }
        let missing = known.missing_scopes(registration.needed);
        let new = NewRegistration {
            start: registration.start.clone(),
            issuer: server.issuer.clone(),
            missing: missing.clone(),
            scopes: registration.needed.clone(),
        };
        if registration.is_step_up
            && server.registration_endpoint.is_some()
            && !interaction.accept_new_registration(&new).await?
        {
            return Err(ClientError::RegistrationLacksScopes { registration: Box::new(new) });
        }
        tracing::warn!(
            %missing,
            "the registration of the client lacks scopes and cannot be updated; a new client is registered, with a new session"
        );
        Ok(None)
    }

    /// The client to which a token was issued, if it is still known.
    pub(super) fn client_by_id(&self, issuer: &Issuer, client_id: &str) -> Result<ClientCredentials, ClientError> {
        if let Some(brought) = self.configured_client(issuer)?.filter(|brought| brought.client_id == client_id) {
            return Ok(brought);
        }
        if let Some(document) = self.settings.client_id_url.as_ref().filter(|it| it.as_str() == client_id) {
            return Ok(documented(issuer, document));
        }
        match self
            .store()
            .client(issuer, client_id)?
            .filter(|known| !known.response.secret_has_expired(self.clock.now()))
        {
            Some(known) => known.credentials(),
            None => Err(ClientError::NoRegistration { issuer: issuer.clone() }),
        }
    }

    /// The settings' client for this authorization server.
    pub(super) fn configured_client(&self, issuer: &Issuer) -> Result<Option<ClientCredentials>, ClientError> {
        if let Some(held) = self.settings.credentials.iter().find(|held| held.issuer == *issuer) {
            return Ok(Some(held.clone()));
        }
        let Some(client) = &self.settings.client else { return Ok(None) };
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let first = bound.get_or_insert_with(|| issuer.clone());
        if first != issuer {
            return Err(ClientError::AuthorizationServerNotListed { issuer: first.clone() });
        }
        Ok(Some(client.clone().at(issuer.clone())))
    }

    /// Forgets a client that its authorization server does not know. Returns whether there was an entry to remove.
    pub(super) async fn forget(&self, client: &Client, registration: &Registration<'_>) -> Result<bool, ClientError> {
        let Registration { redirect_uri, only_for, .. } = *registration;
        let issuer = &client.credentials.issuer;
        let entry: ClientEntry = match client.kept {
            None => return Ok(false),
            Some(StoredAs::Registered) => self.store().lock_client(issuer, redirect_uri, only_for).await?,
            Some(StoredAs::ByHand) => self.store().lock_client_by_hand(issuer, only_for).await?,
        };
        // Another process may have registered again by now.
        if ignore_corrupted(entry.read(issuer))?
            .is_some_and(|kept| kept.response.client_id == client.credentials.client_id)
        {
            entry.remove()?;
        }
        Ok(true)
    }

    async fn ask(
        &self,
        interaction: &dyn Interaction,
        issuer: &Issuer,
        registration: &Registration<'_>,
    ) -> Result<Client, ClientError> {
        let Some(details) = interaction.client_information(issuer).await? else {
            return Err(ClientError::NoRegistration { issuer: issuer.clone() });
        };
        let kept = match Registered::by_hand(issuer.clone(), &details) {
            Some(registered) => {
                self.store().lock_client_by_hand(issuer, registration.only_for).await?.write(&registered)?;
                Some(StoredAs::ByHand)
            }
            None => None,
        };
        Ok(Client { credentials: details.at(issuer.clone()), kept, reused: None })
    }
}

/// The client that its metadata document describes: a public client, because the document publishes no key.
fn documented(issuer: &Issuer, document: &ClientIdUrl) -> ClientCredentials {
    let details =
        ClientInformation { client_id: document.as_str().to_owned(), authentication: ClientAuthentication::None };
    details.at(issuer.clone())
}
