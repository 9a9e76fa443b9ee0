//! [`StoredClient`]: a client as a store keeps it.

use portcullis_metadata::JwkSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{
    Client, ClientRegistration, Credential, FetchedClient, GrantType, RedirectUri, SecretHash,
    SecretMethod,
};

/// A client as a store keeps it: with the hash of its secret, and without configured rights. It can
/// be serialized, and the store decides in which format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredClient {
    /// The name on the consent page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The redirect URIs, as the client wrote them.
    pub redirect_uris: Vec<Box<str>>,
    /// The grant types.
    pub grant_types: Vec<Box<str>>,
    /// How the client authenticates.
    pub credential: StoredCredential,
    /// Whether the client is described by the metadata document at its identifier.
    #[serde(default)]
    pub is_document: bool,
}

/// How a stored client authenticates. `Debug` does not print hashes of secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoredCredential {
    /// A public client.
    None,
    /// `client_secret_basic`, with the hash of the secret.
    SecretBasic(SecretHash),
    /// `client_secret_post`, with the hash of the secret.
    SecretPost(SecretHash),
    /// `private_key_jwt`, with the client's public keys as a JWK set.
    Keys(Value),
}

/// Why a client cannot be stored, or a stored client cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredClientError {
    /// A redirect URI is invalid.
    #[error("a redirect URI of the stored client is invalid")]
    RedirectUri,
    /// A grant type is unknown.
    #[error("a grant type of the stored client is unknown")]
    GrantType,
    /// The client authenticates with keys, and none of them is known or usable.
    #[error("the stored client has no usable key")]
    NoKey,
}

impl StoredClientError {
    /// Returns a stable code for logs and tests.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RedirectUri => "stored_client.redirect_uri",
            Self::GrantType => "stored_client.grant_type",
            Self::NoKey => "stored_client.no_key",
        }
    }
}

impl StoredClient {
    /// Returns what to store of a registered client. The identifier is not part of it.
    ///
    /// # Errors
    /// Fails when the client authenticates with keys that its registration does not have.
    pub fn of_registration(registration: &ClientRegistration) -> Result<Self, StoredClientError> {
        let jwks = registration.information.metadata.jwks.as_ref();
        Self::new(&registration.client, jwks)
    }

    /// Returns what to store of a client with a metadata document.
    ///
    /// # Errors
    /// Fails when the client authenticates with keys that were not fetched.
    pub fn of_document(fetched: &FetchedClient) -> Result<Self, StoredClientError> {
        Self::new(&fetched.client, fetched.jwks.as_ref())
    }

    /// Returns the client.
    ///
    /// # Errors
    /// Fails when the record is damaged, or was written by a version with other grant types.
    pub fn restore(self) -> Result<Client, StoredClientError> {
        let redirect_uris = self
            .redirect_uris
            .iter()
            .map(|uri| RedirectUri::parse_registered(uri))
            .collect::<Result<_, _>>()
            .map_err(|_| StoredClientError::RedirectUri)?;
        let grant_types = self
            .grant_types
            .iter()
            .map(|name| GrantType::parse(name))
            .collect::<Option<_>>()
            .ok_or(StoredClientError::GrantType)?;
        Ok(Client {
            name: self.name,
            redirect_uris,
            credential: self.credential.restore()?,
            grant_types,
            scopes: None,
            may_introspect: false,
            is_document: self.is_document,
        })
    }

    fn new(client: &Client, jwks: Option<&Value>) -> Result<Self, StoredClientError> {
        Ok(Self {
            name: client.name.clone(),
            redirect_uris: client
                .redirect_uris
                .iter()
                .map(|uri| uri.as_str().into())
                .collect(),
            grant_types: client
                .grant_types
                .iter()
                .map(|grant_type| grant_type.as_str().into())
                .collect(),
            credential: StoredCredential::new(&client.credential, jwks)?,
            is_document: client.is_document,
        })
    }
}

impl StoredCredential {
    fn new(credential: &Credential, jwks: Option<&Value>) -> Result<Self, StoredClientError> {
        Ok(match credential {
            Credential::None => Self::None,
            Credential::SecretBasic(secret) => Self::SecretBasic(SecretHash::of(secret)),
            Credential::SecretPost(secret) => Self::SecretPost(SecretHash::of(secret)),
            Credential::HashedSecret(SecretMethod::Basic, hash) => Self::SecretBasic(hash.clone()),
            Credential::HashedSecret(SecretMethod::Post, hash) => Self::SecretPost(hash.clone()),
            Credential::Keys(_) => Self::Keys(jwks.cloned().ok_or(StoredClientError::NoKey)?),
        })
    }

    fn restore(self) -> Result<Credential, StoredClientError> {
        Ok(match self {
            Self::None => Credential::None,
            Self::SecretBasic(hash) => Credential::HashedSecret(SecretMethod::Basic, hash),
            Self::SecretPost(hash) => Credential::HashedSecret(SecretMethod::Post, hash),
            Self::Keys(jwks) => JwkSet::parse(jwks.to_string().as_bytes())
                .ok()
                .and_then(|keys| Credential::keys(&keys))
                .ok_or(StoredClientError::NoKey)?,
        })
    }
}
