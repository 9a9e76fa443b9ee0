//! Clients: configured, registered, or described by their own metadata document.

pub(crate) mod document;
pub(crate) mod management;
mod metadata;
pub(crate) mod registration;
mod registration_token;
pub(crate) mod registry;
pub(crate) mod settings;

use portcullis_authorization_server::client::{GrantType, RedirectUri};
use portcullis_jose::{Algorithm, AlgorithmSet, KeySet};
use portcullis_metadata::{JwkSet, Scopes, Secret};

/// A client.
pub(crate) struct Client {
    /// The name on the consent page.
    pub(crate) name: Option<Box<str>>,
    pub(crate) redirect_uris: Vec<RedirectUri>,
    pub(crate) credential: Credential,
    pub(crate) grant_types: Vec<GrantType>,
    /// The scopes that the client may request. `None` means all scopes of the server.
    pub(crate) scopes: Option<Scopes>,
    /// Whether the client is a protected resource that may introspect tokens.
    pub(crate) may_introspect: bool,
    /// Whether the client is described by the metadata document at its identifier.
    pub(crate) is_document: bool,
}

/// How a client authenticates at the token endpoint (RFC 7591 section 2).
pub(crate) enum Credential {
    /// A public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// `private_key_jwt`, with the client's public keys.
    Keys(KeySet),
}

impl Client {
    /// Returns whether the client registered a grant type.
    pub(crate) fn may_use(&self, grant_type: GrantType) -> bool {
        self.grant_types.contains(&grant_type)
    }
}

impl Credential {
    /// The authentication methods of the token endpoint.
    pub(crate) const METHODS: [&'static str; 4] = [
        "none",
        "client_secret_basic",
        "client_secret_post",
        Self::PRIVATE_KEY_JWT,
    ];
    /// The authentication methods of confidential clients.
    pub(crate) const CONFIDENTIAL_METHODS: [&'static str; 3] = [
        "client_secret_basic",
        "client_secret_post",
        Self::PRIVATE_KEY_JWT,
    ];
    /// The method of clients with keys (RFC 7523 section 2.2).
    pub(crate) const PRIVATE_KEY_JWT: &'static str = "private_key_jwt";

    /// Creates the credential for `private_key_jwt`. Returns `None` if the set has no usable key.
    pub(crate) fn keys(published: &JwkSet) -> Option<Self> {
        let (keys, _) = KeySet::from_jwks(published, assertion_algorithms()).ok()?;
        (!keys.is_empty()).then_some(Self::Keys(keys))
    }

    /// Returns the secret, if the client has one.
    pub(crate) const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::SecretBasic(secret) | Self::SecretPost(secret) => Some(secret),
            Self::None | Self::Keys(_) => None,
        }
    }

    /// Returns whether the client has no credential.
    pub(crate) const fn is_public(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Returns the algorithms that are allowed for assertions and proofs.
pub(crate) fn assertion_algorithms() -> AlgorithmSet {
    [
        Algorithm::Rs256,
        Algorithm::Ps256,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::EdDsa,
    ]
    .into_iter()
    .collect()
}
