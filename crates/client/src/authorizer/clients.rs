//! Selects or registers the client for an authorization server.

use std::sync::PoisonError;

use portcullis_metadata::{ClientIdUrl, Issuer, Scopes};

use super::Authorizer;
use crate::{
    ClientAuthentication, ClientCredentials, ClientError, ClientInformation, Interaction,
    authorization::server::Server,
    registration::credentials::Registered,
    registration::dynamic::{self, Registration},
    store::{ClientEntry, noticed},
};

/// A client to use, and what to forget when the authorization server does not know it any more.
pub(super) struct Client {
    pub(super) credentials: ClientCredentials,
    kept: Option<Kept>,
    /// The registration of an earlier sign-in, if the client is one.
    reused: Option<Registered>,
}

impl Client {
    /// The registration of an earlier sign-in, which the server may have forgotten.
    pub(super) fn reused(&self) -> Option<&Registered> {
        self.reused.as_ref()
    }
}

/// Where a client is kept that was not brought.
#[derive(Clone, Copy)]
enum Kept {
    Registered,
    ByHand,
}

impl Authorizer {
    /// The client for this authorization server: one that was brought, one that a person named before, the client's
    /// document, a registration, or what a person says now.
    pub(super) async fn client(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        registration: &Registration<'_>,
    ) -> Result<Client, ClientError> {
        if let Some(credentials) = self.brought(&server.issuer)? {
            return Ok(Client { credentials, kept: None, reused: None });
        }
        let by_hand = self.store().lock_client_by_hand(&server.issuer, registration.only_for).await?;
        if let Some(known) = noticed(by_hand.read(&server.issuer))?.filter(|_| !self.settings.fresh_registration) {
            return Ok(Client { credentials: known.credentials()?, kept: Some(Kept::ByHand), reused: None });
        }
        drop(by_hand);
        if let Some(document) = self.settings.client_id_url.as_ref().filter(|_| server.takes_client_documents) {
            return Ok(Client { credentials: documented(&server.issuer, document), kept: None, reused: None });
        }
        let redirect_uri = registration.redirect_uri;
        let entry = self.store().lock_client(&server.issuer, redirect_uri, registration.only_for).await?;
        let known = noticed(entry.read(&server.issuer))?;
        let method = self.settings.token_auth_method;
        let serves = |known: &Registered| {
            known.serves(redirect_uri.as_str(), self.clock.now()) && known.authenticates_by(method)
        };
        let known = known.filter(serves);
        let may_reuse =
            |known: &&Registered| known.may_ask_for(registration.needed) && !self.settings.fresh_registration;
        if let Some(known) = known.as_ref().filter(may_reuse) {
            let (credentials, reused) = (known.credentials()?, Some(known.clone()));
            return Ok(Client { credentials, kept: Some(Kept::Registered), reused });
        }
        if let Some(endpoint) = &server.registration_endpoint {
            // What was asked for before is asked for again, so that two needs in turn end in one registration.
            let scopes = known.map_or_else(Scopes::empty, |known| known.asked).union(registration.scopes);
            let registration = Registration { scopes: &scopes, ..*registration };
            let registered = dynamic::register(&*self.fetch, server, endpoint, &registration).await?;
            let credentials = registered.credentials()?;
            entry.write(&registered)?;
            return Ok(Client { credentials, kept: Some(Kept::Registered), reused: None });
        }
        drop(entry);
        self.ask(interaction, &server.issuer, registration).await
    }

    /// The client that a token was given to, where it is still known.
    pub(super) fn client_named(&self, issuer: &Issuer, client_id: &str) -> Result<ClientCredentials, ClientError> {
        if let Some(brought) = self.brought(issuer)?.filter(|brought| brought.client_id == client_id) {
            return Ok(brought);
        }
        if let Some(document) = self.settings.client_id_url.as_ref().filter(|it| it.as_str() == client_id) {
            return Ok(documented(issuer, document));
        }
        match self.store().client(issuer, client_id)?.filter(|known| known.lives(self.clock.now())) {
            Some(known) => known.credentials(),
            None => Err(ClientError::NoRegistration { issuer: issuer.clone() }),
        }
    }

    /// The client of the settings for this authorization server.
    pub(super) fn brought(&self, issuer: &Issuer) -> Result<Option<ClientCredentials>, ClientError> {
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

    /// Forgets a client that its authorization server does not know. Says whether there was anything to forget.
    pub(super) async fn forget(&self, client: &Client, registration: &Registration<'_>) -> Result<bool, ClientError> {
        let Registration { redirect_uri, only_for, .. } = *registration;
        let issuer = &client.credentials.issuer;
        let entry: ClientEntry = match client.kept {
            None => return Ok(false),
            Some(Kept::Registered) => self.store().lock_client(issuer, redirect_uri, only_for).await?,
            Some(Kept::ByHand) => self.store().lock_client_by_hand(issuer, only_for).await?,
        };
        // Somebody else may have registered anew by now.
        if noticed(entry.read(issuer))?.is_some_and(|kept| kept.response.client_id == client.credentials.client_id) {
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
                Some(Kept::ByHand)
            }
            None => None,
        };
        Ok(Client { credentials: details.at(issuer.clone()), kept, reused: None })
    }
}

/// The client that its document describes: a public one, since nobody here has a key that is published there.
fn documented(issuer: &Issuer, document: &ClientIdUrl) -> ClientCredentials {
    let details =
        ClientInformation { client_id: document.as_str().to_owned(), authentication: ClientAuthentication::None };
    details.at(issuer.clone())
}
