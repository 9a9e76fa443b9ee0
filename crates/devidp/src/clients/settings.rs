//! [`ClientSettings`]: clients from the settings.

use portcullis_authorization_server::client::{Client, Credential, GrantType, RedirectUri};
use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{JwkSet, Scopes, Secret};
use url::Url;

/// A configured client. It exists from the start and never expires.
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
    /// The name on the consent page. Default none.
    pub name: Option<String>,
    /// How the client authenticates.
    pub authentication: ClientAuthentication,
    /// The redirect URIs: `https`, or `http` with a loopback host and any port. Required for
    /// [`GrantType::AuthorizationCode`]. Default none.
    pub redirect_uris: Vec<String>,
    /// The grant types that the client may use. Default none, which is right for a client that only
    /// introspects.
    pub grant_types: Vec<GrantType>,
    /// The scopes that the client may request. Default all scopes of the server.
    pub scopes: Option<Scopes>,
    /// Whether the client is a protected resource that may introspect tokens (RFC 7662). Default
    /// `false`.
    pub may_introspect: bool,
    /// Where the client accepts logout tokens (OpenID Connect Back-Channel Logout 1.0): `https`, or
    /// `http` with a loopback host. Default none.
    pub backchannel_logout_uri: Option<String>,
}

/// How a client authenticates (RFC 7591 section 2, `token_endpoint_auth_method`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// `none`: a public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// `client_secret_basic` or `client_secret_post`, as at providers that do not bind an
    /// application to one of them.
    Secret(Secret),
    /// `private_key_jwt`, with the client's public keys (RFC 7523 section 2.2).
    PrivateKeyJwt(JwkSet),
}

/// Why a configured client is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientSettingsError {
    /// The client has no identifier.
    #[error("it has no identifier: name one")]
    NoId,
    /// Another client has the same identifier.
    #[error("another client has the same identifier: rename one of them")]
    Twice,
    /// The client's secret is empty.
    #[error("its secret is empty")]
    EmptySecret,
    /// The client has no usable key for RS256, PS256, ES256, ES384 or EdDSA.
    #[error("none of its keys is a usable public key for RS256, PS256, ES256, ES384 or EdDSA")]
    NoKey,
    /// A redirect URI is invalid.
    #[error("the redirect URI {uri:?} is not usable: {reason}")]
    RedirectUri {
        /// The redirect URI.
        uri: String,
        /// The cause.
        reason: &'static str,
    },
    /// The client may use `authorization_code` but has no redirect URI.
    #[error(
        "it may use authorization_code but has no redirect URI: name one, like http://127.0.0.1/callback"
    )]
    NoRedirectUri,
    /// The logout URI is invalid.
    #[error(
        "the backchannel_logout_uri {uri:?} is not usable: it must be https, or http with a loopback host, without a fragment"
    )]
    LogoutUri {
        /// The URI.
        uri: String,
    },
    /// The client may request a scope that the server does not have.
    #[error(
        "it may request the scope {scope:?}, which is not among the server's scopes: add it there or remove it here"
    )]
    Scope {
        /// The first such scope.
        scope: String,
    },
    /// The client may use `client_credentials` but cannot authenticate.
    #[error("it may use client_credentials but is public: give it a secret or keys")]
    PublicMachine,
    /// The client may introspect but cannot authenticate.
    #[error("it may introspect but is public: give it a secret or keys")]
    PublicResource,
}

impl ClientSettings {
    /// Creates a public client without grant types.
    pub fn public(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            authentication: ClientAuthentication::None,
            redirect_uris: Vec::new(),
            grant_types: Vec::new(),
            scopes: None,
            may_introspect: false,
            backchannel_logout_uri: None,
        }
    }

    /// Creates a client with a secret for `client_secret_basic`, without grant types.
    pub fn with_secret(id: impl Into<String>, secret: Secret) -> Self {
        Self {
            authentication: ClientAuthentication::SecretBasic(secret),
            ..Self::public(id)
        }
    }

    /// Validates the settings and returns the client. `supported` are the scopes of the server.
    pub(super) fn to_client(&self, supported: &Scopes) -> Result<Client, ClientSettingsError> {
        let client = Client {
            name: self.name.as_deref().map(Box::from),
            credential: self.authentication.to_credential()?,
            redirect_uris: self.parse_redirect_uris()?,
            grant_types: self.grant_types.clone(),
            scopes: self.scopes.clone(),
            may_introspect: self.may_introspect,
            is_document: false,
        };
        let mut scopes = self.scopes.iter().flat_map(Scopes::iter);
        if let Some(scope) = scopes.find(|scope| !supported.contains(scope)) {
            return Err(ClientSettingsError::Scope {
                scope: scope.to_owned(),
            });
        }
        if let Some(uri) = &self.backchannel_logout_uri {
            check_logout_uri(uri)?;
        }
        if self.id.is_empty() {
            return Err(ClientSettingsError::NoId);
        }
        if client.may_use(GrantType::AuthorizationCode) && client.redirect_uris.is_empty() {
            return Err(ClientSettingsError::NoRedirectUri);
        }
        if client.may_use(GrantType::ClientCredentials) && client.credential.is_public() {
            return Err(ClientSettingsError::PublicMachine);
        }
        if client.may_introspect && client.credential.is_public() {
            return Err(ClientSettingsError::PublicResource);
        }
        Ok(client)
    }

    fn parse_redirect_uris(&self) -> Result<Vec<RedirectUri>, ClientSettingsError> {
        let parse = |uri: &String| {
            RedirectUri::parse(uri).map_err(|error| ClientSettingsError::RedirectUri {
                uri: uri.clone(),
                reason: error.description(),
            })
        };
        self.redirect_uris.iter().map(parse).collect()
    }
}

fn check_logout_uri(uri: &str) -> Result<(), ClientSettingsError> {
    let url = Url::parse(uri).ok();
    let url = url.filter(|url| UrlPolicy::Operator.check(url).is_ok() && url.fragment().is_none());
    url.map(drop).ok_or(ClientSettingsError::LogoutUri {
        uri: uri.to_owned(),
    })
}

impl ClientAuthentication {
    fn to_credential(&self) -> Result<Credential, ClientSettingsError> {
        match self {
            Self::None => Ok(Credential::None),
            Self::SecretBasic(secret) | Self::SecretPost(secret) | Self::Secret(secret)
                if secret.secret().is_empty() =>
            {
                Err(ClientSettingsError::EmptySecret)
            }
            Self::SecretBasic(secret) | Self::Secret(secret) => {
                Ok(Credential::SecretBasic(secret.clone()))
            }
            Self::SecretPost(secret) => Ok(Credential::SecretPost(secret.clone())),
            Self::PrivateKeyJwt(keys) => Credential::keys(keys).ok_or(ClientSettingsError::NoKey),
        }
    }
}
