//! Selects or registers the client for an authorization server.

use portcullis_metadata::{Issuer, Scopes, client::ClientIdUrl};

use super::Authorizer;
use crate::{
    ClientAuthentication, ClientCredentials, ClientError, ClientInformation, Interaction,
    NewRegistration, Shortened, StartUrl,
    registration::dynamic::{self, Registration},
    registration::registered::Registered,
    server::Server,
    store::{ClientEntry, ignore_corrupted},
};

/// The client to use at an authorization server.
pub(super) struct Client {
    pub(super) credentials: ClientCredentials,
    /// The store entry to remove if the authorization server no longer knows the client.
    stored_as: Option<StoredAs>,
    /// The registration of an earlier sign-in, if the client uses one.
    reused: Option<Registered>,
}

/// The store entry of a client that does not come from the settings.
#[derive(Clone, Copy)]
enum StoredAs {
    /// The client was registered.
    Registered,
    /// The user has entered the client.
    ByHand,
}

impl Client {
    /// A client that is not in the store.
    fn without_entry(credentials: ClientCredentials) -> Self {
        Self {
            credentials,
            stored_as: None,
            reused: None,
        }
    }

    /// A client that has just been registered, or whose registration has just been updated.
    fn registered(credentials: ClientCredentials) -> Self {
        Self {
            credentials,
            stored_as: Some(StoredAs::Registered),
            reused: None,
        }
    }

    /// The registration of an earlier sign-in, which the server may have forgotten.
    pub(super) fn reused(&self) -> Option<&Registered> {
        self.reused.as_ref()
    }
}

impl Authorizer {
    /// Selects the client for this authorization server: from the settings, entered earlier by the
    /// user, the client's metadata document, a registration, or entered by the user now.
    pub(super) async fn client(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        registration: &Registration<'_>,
    ) -> Result<Client, ClientError> {
        if let Some(credentials) = self
            .configured_client(registration.start, &server.issuer)
            .await?
        {
            return Ok(Client::without_entry(credentials));
        }
        if let Some(entered) = self.client_by_hand(server, registration).await? {
            return Ok(entered);
        }
        if let Some(document) = self
            .settings
            .client_id_url
            .as_ref()
            .filter(|_| server.takes_client_documents)
        {
            return Ok(Client::without_entry(documented(&server.issuer, document)));
        }
        if let Some(registered) = self
            .registered_client(interaction, server, registration)
            .await?
        {
            return Ok(registered);
        }
        self.ask(interaction, &server.issuer, registration).await
    }

    /// Returns the client that the user has entered at an earlier sign-in.
    async fn client_by_hand(
        &self,
        server: &Server,
        registration: &Registration<'_>,
    ) -> Result<Option<Client>, ClientError> {
        let entry = self
            .store()
            .lock_client_by_hand(&server.issuer, registration.only_for)
            .await?;
        let known = ignore_corrupted(entry.read(&server.issuer))?
            .filter(|_| !self.settings.fresh_registration);
        let Some(known) = known else { return Ok(None) };
        Ok(Some(Client {
            credentials: known.credentials()?,
            stored_as: Some(StoredAs::ByHand),
            reused: None,
        }))
    }

    /// Returns the registration of an earlier sign-in, after an update if it lacks scopes, or
    /// registers a client. `None` if there is no registration with these scopes and the server
    /// offers none.
    async fn registered_client(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        registration: &Registration<'_>,
    ) -> Result<Option<Client>, ClientError> {
        let redirect_uri = registration.redirect_uri;
        let entry = self
            .store()
            .lock_client(&server.issuer, redirect_uri, registration.only_for)
            .await?;
        let known = ignore_corrupted(entry.read(&server.issuer))?.filter(|known| {
            known.serves(redirect_uri.as_str(), self.clock.now())
                && known.authenticates_by(self.settings.token_auth_method)
        });
        let usable = known.as_ref().filter(|_| !self.settings.fresh_registration);
        if let Some(known) = usable.filter(|known| known.may_ask_for(registration.needed)) {
            let reused = Some(known.clone());
            return Ok(Some(Client {
                reused,
                ..Client::registered(known.credentials()?)
            }));
        }
        let Some(endpoint) = &server.registration_endpoint else {
            return Ok(None);
        };
        if let Some(known) = usable
            && let Some(updated) = self
                .with_missing_scopes(interaction, server, known, registration)
                .await?
        {
            let credentials = updated.credentials()?;
            entry.write(&updated)?;
            return Ok(Some(Client::registered(credentials)));
        }
        // Includes the scopes requested earlier, so that sign-ins with alternating scopes share one
        // registration.
        let scopes = known
            .map_or_else(Scopes::empty, |known| known.asked)
            .union(registration.scopes);
        let registration = Registration {
            scopes: &scopes,
            ..*registration
        };
        let registered = dynamic::register(&*self.fetch, server, endpoint, &registration).await?;
        let credentials = registered.credentials()?;
        entry.write(&registered)?;
        Ok(Some(Client::registered(credentials)))
    }

    /// Returns the known registration with the missing scopes added. `None` if the server does not
    /// update it: a new client is then registered, and the server's session with the old one ends.
    /// In a step-up, the user is asked before.
    async fn with_missing_scopes(
        &self,
        interaction: &dyn Interaction,
        server: &Server,
        known: &Registered,
        registration: &Registration<'_>,
    ) -> Result<Option<Registered>, ClientError> {
        let scopes = known.asked.union(registration.scopes);
        if let Some(updated) = self.updated_registration(server, known, &scopes).await {
            tracing::info!(scopes = %Shortened(&scopes), "the registration of the client was updated");
            return Ok(Some(updated));
        }
        let missing = known.missing_scopes(registration.needed);
        let new = NewRegistration {
            start: registration.start.clone(),
            issuer: server.issuer.clone(),
            missing: missing.clone(),
            scopes: registration.needed.clone(),
        };
        if registration.is_step_up && !interaction.accept_new_registration(&new).await? {
            return Err(ClientError::RegistrationLacksScopes {
                registration: Box::new(new),
            });
        }
        tracing::warn!(
            missing = %Shortened(&missing),
            "the registration of the client lacks scopes and cannot be updated; a new client is registered, with a new session"
        );
        Ok(None)
    }

    /// Returns the client to which a token for `start` was issued, if it is still known.
    pub(super) async fn client_by_id(
        &self,
        start: &StartUrl,
        issuer: &Issuer,
        client_id: &str,
    ) -> Result<ClientCredentials, ClientError> {
        let configured = match self.configured_client(start, issuer).await {
            // The client now belongs to another authorization server.
            Err(ClientError::ClientOfOtherServer { .. }) => None,
            configured => configured?,
        };
        if let Some(configured) = configured.filter(|client| client.client_id == client_id) {
            return Ok(configured);
        }
        if let Some(document) = self
            .settings
            .client_id_url
            .as_ref()
            .filter(|url| url.as_str() == client_id)
        {
            return Ok(documented(issuer, document));
        }
        let has_valid_secret =
            |known: &Registered| !known.response.secret_has_expired(self.clock.now());
        match self
            .store()
            .client(issuer, client_id)?
            .filter(has_valid_secret)
        {
            Some(known) => known.credentials(),
            None => Err(ClientError::NoRegistration {
                issuer: issuer.clone(),
            }),
        }
    }

    /// Returns the settings' client for this authorization server. Without an authorization server
    /// of its own, the client is bound to this one, if it is the first. Fails with
    /// [`ClientError::ClientOfOtherServer`] when the client is bound to another one.
    pub(super) async fn configured_client(
        &self,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<Option<ClientCredentials>, ClientError> {
        if let Some(credentials) = self
            .settings
            .credentials
            .iter()
            .find(|credentials| credentials.issuer == *issuer)
        {
            return Ok(Some(credentials.clone()));
        }
        let Some(client) = &self.settings.client else {
            return Ok(None);
        };
        self.bind_client(client, start, issuer).await?;
        Ok(Some(client.clone().at(issuer.clone())))
    }

    /// Forgets a client that its authorization server does not know. Returns false if the client
    /// does not come from the store, so that no other can replace it.
    pub(super) async fn forget(
        &self,
        client: &Client,
        registration: &Registration<'_>,
    ) -> Result<bool, ClientError> {
        let Registration {
            redirect_uri,
            only_for,
            ..
        } = *registration;
        let issuer = &client.credentials.issuer;
        let entry: ClientEntry = match client.stored_as {
            None => return Ok(false),
            Some(StoredAs::Registered) => {
                self.store()
                    .lock_client(issuer, redirect_uri, only_for)
                    .await?
            }
            Some(StoredAs::ByHand) => self.store().lock_client_by_hand(issuer, only_for).await?,
        };
        // Another process may have registered again by now.
        let is_client =
            |stored: Registered| stored.response.client_id == client.credentials.client_id;
        if ignore_corrupted(entry.read(issuer))?.is_some_and(is_client) {
            entry.remove()?;
        }
        Ok(true)
    }

    /// Asks the user for a client, and stores it.
    async fn ask(
        &self,
        interaction: &dyn Interaction,
        issuer: &Issuer,
        registration: &Registration<'_>,
    ) -> Result<Client, ClientError> {
        let Some(details) = interaction.client_information(issuer).await? else {
            return Err(ClientError::NoRegistration {
                issuer: issuer.clone(),
            });
        };
        let mut stored_as = None;
        if let Some(registered) = Registered::by_hand(issuer.clone(), &details) {
            self.store()
                .lock_client_by_hand(issuer, registration.only_for)
                .await?
                .write(&registered)?;
            stored_as = Some(StoredAs::ByHand);
        }
        Ok(Client {
            credentials: details.at(issuer.clone()),
            stored_as,
            reused: None,
        })
    }
}

/// Returns the client that its metadata document describes: a public client, because the document
/// publishes no key.
fn documented(issuer: &Issuer, document: &ClientIdUrl) -> ClientCredentials {
    let details = ClientInformation {
        client_id: document.as_str().to_owned(),
        authentication: ClientAuthentication::None,
    };
    details.at(issuer.clone())
}
