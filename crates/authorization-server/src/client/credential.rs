//! [`Credential`]: how a client authenticates.

use portcullis_jose::{Algorithm, AlgorithmSet, KeySet};
use portcullis_metadata::{JwkSet, Secret};

use crate::client::SecretHash;

/// How a client authenticates at the token endpoint (RFC 7591 section 2).
#[derive(Debug)]
#[non_exhaustive]
pub enum Credential {
    /// A public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// `client_secret_basic` or `client_secret_post` of a client that was stored with the hash of
    /// its secret.
    HashedSecret(SecretMethod, SecretHash),
    /// `private_key_jwt`, with the client's public keys.
    Keys(KeySet),
}

/// How a request presents a client secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretMethod {
    /// `client_secret_basic`: in the header `Authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

impl Credential {
    /// The authentication methods of the token endpoint.
    pub const METHODS: [&'static str; 4] = [
        "none",
        "client_secret_basic",
        "client_secret_post",
        Self::PRIVATE_KEY_JWT,
    ];
    /// The authentication methods of confidential clients.
    pub const CONFIDENTIAL_METHODS: [&'static str; 3] = [
        "client_secret_basic",
        "client_secret_post",
        Self::PRIVATE_KEY_JWT,
    ];
    /// The method of clients with keys (RFC 7523 section 2.2).
    pub const PRIVATE_KEY_JWT: &'static str = "private_key_jwt";

    /// Creates the credential for `private_key_jwt`. Returns `None` if the set has no usable key.
    pub fn keys(published: &JwkSet) -> Option<Self> {
        let (keys, _) = KeySet::from_jwks(published, assertion_algorithms()).ok()?;
        (!keys.is_empty()).then_some(Self::Keys(keys))
    }

    /// Returns the secret, if the client has one that is known in plain text.
    pub const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::SecretBasic(secret) | Self::SecretPost(secret) => Some(secret),
            Self::None | Self::HashedSecret(..) | Self::Keys(_) => None,
        }
    }

    /// Returns whether the client has no credential.
    pub const fn is_public(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Returns the algorithms that are allowed for assertions and proofs.
pub fn assertion_algorithms() -> AlgorithmSet {
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
