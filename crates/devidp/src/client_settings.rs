use std::{collections::HashMap, sync::Arc};

use portcullis_metadata::{JwkSet, Scopes, Secret};

use crate::{
    DevIdpError, GrantType,
    clients::{Client, Credential},
    redirect::RedirectUri,
};

/// A client that is there from the start and is never forgotten.
///
/// ```
/// use portcullis_devidp::{ClientSettings, DevIdpSettings};
/// use portcullis_metadata::Secret;
///
/// let mut resource = ClientSettings::with_secret("portcullis", Secret::new("from the environment"));
/// resource.may_introspect = true;
/// let settings = DevIdpSettings { clients: vec![resource], ..DevIdpSettings::default() };
/// assert!(settings.clients[0].grant_types.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The client identifier.
    pub id: String,
    /// What the consent page calls it. Default none.
    pub name: Option<String>,
    /// How it proves itself.
    pub authentication: ClientAuthentication,
    /// Where codes may be sent: `https`, or `http` to a loopback host, on which the port may be another one. Needed for
    /// [`GrantType::AuthorizationCode`]. Default none.
    pub redirect_uris: Vec<String>,
    /// What it may get tokens with. Default nothing, which is right for a client that only introspects.
    pub grant_types: Vec<GrantType>,
    /// The scopes that it may ask for. Default all of the server's.
    pub scopes: Option<Scopes>,
    /// Whether it is a protected resource that may ask about tokens (RFC 7662). Default `false`.
    pub may_introspect: bool,
}

/// How a client proves itself (RFC 7591 section 2, `token_endpoint_auth_method`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// `none`: a public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// `private_key_jwt`, with the client's public keys (RFC 7523 section 2.2).
    PrivateKeyJwt(JwkSet),
}

/// What is wrong with a client of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientProblem {
    /// It has no identifier.
    #[error("it has no identifier: name one")]
    NoId,
    /// Another client has the same identifier.
    #[error("another client has the same identifier: rename one of them")]
    Twice,
    /// Its secret is empty.
    #[error("its secret is empty")]
    EmptySecret,
    /// None of its keys verifies any of RS256, PS256, ES256, ES384 and EdDSA.
    #[error("none of its keys is a usable public key for RS256, PS256, ES256, ES384 or EdDSA")]
    NoKey,
    /// A redirect URI cannot be used.
    #[error("the redirect URI {uri:?} is not usable: {reason}")]
    RedirectUri {
        /// The redirect URI as it was written.
        uri: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It may use codes, and there is nowhere to send them.
    #[error("it may use authorization_code and has no redirect URI: name one, like http://127.0.0.1/callback")]
    NoRedirectUri,
    /// It may ask for a scope that the server does not have.
    #[error("it may ask for the scope {scope:?}, which is none of the server's scopes: add it there or leave it out")]
    Scope {
        /// The first such scope.
        scope: String,
    },
    /// It may act for itself, and cannot prove itself.
    #[error("it may use client_credentials and is public: give it a secret or keys")]
    PublicMachine,
    /// It may introspect, and cannot prove itself.
    #[error("it may introspect and is public: give it a secret or keys")]
    PublicResource,
}

impl ClientSettings {
    /// A public client that may use nothing yet.
    pub fn public(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            authentication: ClientAuthentication::None,
            redirect_uris: Vec::new(),
            grant_types: Vec::new(),
            scopes: None,
            may_introspect: false,
        }
    }

    /// A client with a secret that it sends in the `Authorization` header, and that may use nothing yet.
    pub fn with_secret(id: impl Into<String>, secret: Secret) -> Self {
        Self { authentication: ClientAuthentication::SecretBasic(secret), ..Self::public(id) }
    }

    fn client(&self, supported: &Scopes) -> Result<Client, ClientProblem> {
        let credential = match &self.authentication {
            ClientAuthentication::None => Credential::None,
            ClientAuthentication::SecretBasic(secret) | ClientAuthentication::SecretPost(secret)
                if secret.secret().is_empty() =>
            {
                return Err(ClientProblem::EmptySecret);
            }
            ClientAuthentication::SecretBasic(secret) => Credential::SecretBasic(secret.clone()),
            ClientAuthentication::SecretPost(secret) => Credential::SecretPost(secret.clone()),
            ClientAuthentication::PrivateKeyJwt(keys) => Credential::keys(keys).ok_or(ClientProblem::NoKey)?,
        };
        let redirect_uris: Result<Vec<_>, _> = self
            .redirect_uris
            .iter()
            .map(|uri| {
                RedirectUri::parse(uri)
                    .map_err(|error| ClientProblem::RedirectUri { uri: uri.clone(), reason: error.description() })
            })
            .collect();
        let mut scopes = self.scopes.iter().flat_map(Scopes::iter);
        if let Some(scope) = scopes.find(|scope| !supported.contains(scope)) {
            return Err(ClientProblem::Scope { scope: scope.to_owned() });
        }
        let client = Client {
            name: self.name.as_deref().map(Box::from),
            redirect_uris: redirect_uris?,
            credential,
            grant_types: self.grant_types.clone(),
            scopes: self.scopes.clone(),
            may_introspect: self.may_introspect,
            is_document: false,
        };
        match () {
            () if self.id.is_empty() => Err(ClientProblem::NoId),
            () if client.may_use(GrantType::AuthorizationCode) && client.redirect_uris.is_empty() => {
                Err(ClientProblem::NoRedirectUri)
            }
            () if client.may_use(GrantType::ClientCredentials) && client.credential.is_public() => {
                Err(ClientProblem::PublicMachine)
            }
            () if self.may_introspect && client.credential.is_public() => Err(ClientProblem::PublicResource),
            () => Ok(client),
        }
    }
}

/// The clients of the settings by identifier.
pub(crate) fn clients(
    settings: &[ClientSettings],
    supported: &Scopes,
) -> Result<HashMap<Box<str>, Arc<Client>>, DevIdpError> {
    let mut clients = HashMap::new();
    for settings in settings {
        let failed = |problem| DevIdpError::Client { id: settings.id.clone(), problem };
        let client = settings.client(supported).map_err(failed)?;
        if clients.insert(settings.id.as_str().into(), Arc::new(client)).is_some() {
            return Err(failed(ClientProblem::Twice));
        }
    }
    Ok(clients)
}
