//! [`NewCredential`]: how a client that registers will authenticate.

use portcullis_metadata::{Secret, client::ClientMetadata};
use serde_json::Value;

use crate::{
    client::{
        Credential,
        metadata::{invalid, parse_keys},
    },
    error::ErrorResponse,
    random::random_secret,
};

/// The credential of a client, and what the information response says about it.
pub(super) struct NewCredential {
    /// The `token_endpoint_auth_method`.
    pub(super) method: &'static str,
    pub(super) credential: Credential,
    pub(super) secret: Option<Secret>,
    /// The client's public keys as it sent them.
    pub(super) jwks: Option<Value>,
}

impl NewCredential {
    /// Creates the credential for the requested method. A `current` secret for the same method is
    /// kept.
    pub(super) fn from_metadata(
        metadata: &ClientMetadata,
        current: Option<&Credential>,
    ) -> Result<Self, ErrorResponse> {
        // RFC 7591 section 2: the default is client_secret_basic.
        let method = metadata.token_endpoint_auth_method.as_deref();
        match method.unwrap_or("client_secret_basic") {
            "none" => Ok(Self {
                method: "none",
                credential: Credential::None,
                secret: None,
                jwks: None,
            }),
            "client_secret_basic" => {
                let kept = match current {
                    Some(Credential::SecretBasic(secret)) => Some(secret),
                    _ => None,
                };
                Self::with_secret("client_secret_basic", kept, Credential::SecretBasic)
            }
            "client_secret_post" => {
                let kept = match current {
                    Some(Credential::SecretPost(secret)) => Some(secret),
                    _ => None,
                };
                Self::with_secret("client_secret_post", kept, Credential::SecretPost)
            }
            Credential::PRIVATE_KEY_JWT => {
                let credential = parse_keys(metadata)?;
                Ok(Self {
                    method: Credential::PRIVATE_KEY_JWT,
                    credential,
                    secret: None,
                    jwks: metadata.jwks.clone(),
                })
            }
            _ => Err(invalid(
                "token_endpoint_auth_method must be none, client_secret_basic, client_secret_post or private_key_jwt",
            )),
        }
    }

    /// Creates the credential of a method with a secret, which is new unless one is kept.
    fn with_secret(
        method: &'static str,
        kept: Option<&Secret>,
        credential: fn(Secret) -> Credential,
    ) -> Result<Self, ErrorResponse> {
        let secret = kept.cloned().map_or_else(|| random_secret(32), Ok)?;
        Ok(Self {
            method,
            credential: credential(secret.clone()),
            secret: Some(secret),
            jwks: None,
        })
    }
}
