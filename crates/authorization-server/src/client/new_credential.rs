//! [`NewCredential`]: how a client that registers will authenticate.

use portcullis_metadata::{Secret, client::ClientMetadata};
use serde_json::Value;

use crate::{
    client::{
        Credential, RedirectUri,
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
            "none" => Ok(Self::public()),
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

    /// Creates the credential for the requested method, or `none` if the method is not supported. A
    /// native client is public: each copy of the program contains its secret (RFC 8252 section
    /// 8.5).
    pub(super) fn reduced(
        metadata: &ClientMetadata,
        redirect_uris: &[RedirectUri],
    ) -> Result<Self, ErrorResponse> {
        let is_supported = match metadata.token_endpoint_auth_method.as_deref() {
            None | Some("client_secret_basic" | "client_secret_post") => true,
            Some(Credential::PRIVATE_KEY_JWT) => metadata.jwks.is_some(),
            Some(_) => false,
        };
        if !is_supported || redirect_uris.iter().all(RedirectUri::is_native) {
            return Ok(Self::public());
        }
        // Without `jwks_uri`: keys at a URL that anyone can register are not fetched.
        let metadata = ClientMetadata {
            token_endpoint_auth_method: metadata.token_endpoint_auth_method.clone(),
            jwks: metadata.jwks.clone(),
            ..ClientMetadata::default()
        };
        Self::from_metadata(&metadata, None)
    }

    fn public() -> Self {
        Self {
            method: "none",
            credential: Credential::None,
            secret: None,
            jwks: None,
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
