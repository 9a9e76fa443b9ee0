use std::sync::Arc;

use portcullis_jose::{Algorithm, AlgorithmSet, KeySet};
use portcullis_metadata::{JwkSet, Scopes, Secret};

use crate::{GrantType, redirect::RedirectUri};

/// A client, wherever it is known from.
pub(crate) struct Client {
    pub(crate) name: Option<Box<str>>,
    pub(crate) redirect_uris: Vec<RedirectUri>,
    pub(crate) credential: Credential,
    pub(crate) grant_types: Vec<GrantType>,
    /// The scopes that it may ask for, where they are fewer than those of the server.
    pub(crate) scopes: Option<Scopes>,
    pub(crate) may_introspect: bool,
    /// Whether its identifier is the address of the document that all this is from.
    pub(crate) is_document: bool,
}

/// How a client proves itself at the token endpoint (RFC 7591 section 2).
pub(crate) enum Credential {
    /// A public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
    /// `private_key_jwt`, with the public keys that it signs for.
    Keys(KeySet),
}

/// A client's row in the table of clients.
pub(crate) struct Registered {
    pub(crate) client: Arc<Client>,
    /// Whether it ever obtained a code. A client that did is not put out for a newer one.
    pub(crate) used: bool,
}

impl Client {
    pub(crate) fn may_use(&self, grant_type: GrantType) -> bool {
        self.grant_types.contains(&grant_type)
    }
}

impl Credential {
    /// The methods of the token endpoint.
    pub(crate) const METHODS: [&'static str; 4] =
        ["none", "client_secret_basic", "client_secret_post", Self::PRIVATE_KEY_JWT];
    /// The methods of clients that have something to prove themselves with.
    pub(crate) const CONFIDENTIAL_METHODS: [&'static str; 3] =
        ["client_secret_basic", "client_secret_post", Self::PRIVATE_KEY_JWT];
    pub(crate) const PRIVATE_KEY_JWT: &'static str = "private_key_jwt";

    /// The credential of a client that signs. `None` when not one of its keys can verify.
    pub(crate) fn keys(published: &JwkSet) -> Option<Self> {
        let (keys, _) = KeySet::from_jwks(published, assertion_algorithms()).ok()?;
        (!keys.is_empty()).then_some(Self::Keys(keys))
    }

    pub(crate) const fn is_public(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// What assertions and proofs may be signed with.
pub(crate) fn assertion_algorithms() -> AlgorithmSet {
    [Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa].into_iter().collect()
}
